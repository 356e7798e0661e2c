"""nearkin: train and compare image-retrieval embeddings fairly."""

__version__ = "0.1.0"
