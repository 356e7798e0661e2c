"""Data: from files, or glyphs drawn here, to batches of uint8 pixels.

table = load_table("cub", "CUB_200_2011")       # Table: paths, labels, classes, official split
report = verify(table, CUB.official)            # Report: are all images there and readable?
images = open_images(table, resize=256)         # Images: every image decoded and resized once, in the cache
source = PixelSource(images, size=224, crop=224, augment=table.augment)
batch = source.train(indices, generator)        # (B, 3, 224, 224) uint8
"""

from nearkin.data.build import load_table
from nearkin.data.cache import Decoded, Files, Images, Packed, cache_dir, data_hash, decoded, open_images
from nearkin.data.exclude import Copies, dedupe, exclude
from nearkin.data.folders import Folder
from nearkin.data.glyphs import Glyphs
from nearkin.data.imagenet import ImageNet
from nearkin.data.images import images_from, read_image
from nearkin.data.lists import CSV
from nearkin.data.official import CUB, SOP, Cars196, InShop
from nearkin.data.source import PixelSource
from nearkin.data.table import Augment, Table
from nearkin.data.verify import Report, verify

__all__ = [
    "CSV",
    "CUB",
    "SOP",
    "Augment",
    "Cars196",
    "Copies",
    "Decoded",
    "Files",
    "Folder",
    "Glyphs",
    "ImageNet",
    "Images",
    "InShop",
    "Packed",
    "PixelSource",
    "Report",
    "Table",
    "cache_dir",
    "data_hash",
    "decoded",
    "dedupe",
    "exclude",
    "images_from",
    "load_table",
    "open_images",
    "read_image",
    "verify",
]
