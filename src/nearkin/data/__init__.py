"""Data: tables, adapters, cache, transforms and the embedded glyphs."""
