"""Numbers as pictures: maps in colours, alone or over an image."""

import numpy as np


def coloured(values: np.ndarray, colours: str, low: float, high: float) -> np.ndarray:
    """Numbers (h, w) in the colours of a colour map of matplotlib, from `low` to `high`.       -> (h, w, 3) uint8"""
    from matplotlib import colormaps

    share = (np.asarray(values, np.float64) - low) / ((high - low) or 1.0)
    return (255 * colormaps[colours](share.clip(0, 1))[..., :3]).round().astype(np.uint8)


def overlaid(pixels: np.ndarray, values: np.ndarray, colours: str, low: float, high: float) -> np.ndarray:
    """A coarse map (h, w) over a grey image (H, W, 3), cell by cell: it is no finer than it looks."""
    height, width = pixels.shape[:2]
    rows, columns = np.arange(height) * values.shape[0] // height, np.arange(width) * values.shape[1] // width
    over = coloured(values, colours, low, high)[rows][:, columns]  # (H, W, 3)
    return (0.4 * pixels.mean(2, keepdims=True) + 0.6 * over).round().astype(np.uint8)


def framed(image: np.ndarray, colour: str, share: float = 0.05) -> np.ndarray:
    """An image (H, W, 3) uint8 inside a frame, that wide as a share of its height.       -> (H + 2w, W + 2w, 3)"""
    from matplotlib.colors import to_rgb

    width = max(2, round(share * image.shape[0]))
    whole = np.empty((image.shape[0] + 2 * width, image.shape[1] + 2 * width, 3), np.uint8)
    whole[:] = np.round(255 * np.array(to_rgb(colour)))
    whole[width:-width, width:-width] = image
    return whole
