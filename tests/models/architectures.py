"""Names and shapes of the public checkpoints, from the architecture tables of the papers and ports, without a look at
our modules. A checkpoint is {name: shape}, classifiers included."""

Shapes = dict[str, tuple[int, ...]]


def conv(name: str, inputs: int, outputs: int, kernel: int, bias: bool = False) -> Shapes:
    weight = {f"{name}.weight": (outputs, inputs, kernel, kernel)}
    return weight | ({f"{name}.bias": (outputs,)} if bias else {})


def bn(name: str, channels: int) -> Shapes:
    return {f"{name}.{k}": (channels,) for k in ("weight", "bias", "running_mean", "running_var")} | {
        f"{name}.num_batches_tracked": ()
    }


def linear(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def resnet50() -> Shapes:
    shapes = conv("conv1", 3, 64, 7) | bn("bn1", 64) | linear("fc", 2048, 1000)
    inputs = 64
    for layer, width, blocks in ((1, 64, 3), (2, 128, 4), (3, 256, 6), (4, 512, 3)):
        for block in range(blocks):
            at = f"layer{layer}.{block}"
            for i, (a, b, kernel) in enumerate(((inputs, width, 1), (width, width, 3), (width, 4 * width, 1)), 1):
                shapes |= conv(f"{at}.conv{i}", a, b, kernel) | bn(f"{at}.bn{i}", b)
            if block == 0:
                shapes |= conv(f"{at}.downsample.0", inputs, 4 * width, 1) | bn(f"{at}.downsample.1", 4 * width)
            inputs = 4 * width
    return shapes


def googlenet() -> Shapes:
    def unit(name: str, inputs: int, outputs: int, kernel: int) -> Shapes:
        return conv(f"{name}.conv", inputs, outputs, kernel) | bn(f"{name}.bn", outputs)

    shapes = unit("conv1", 3, 64, 7) | unit("conv2", 64, 64, 1) | unit("conv3", 64, 192, 3) | linear("fc", 1024, 1000)
    for name, inputs, one, three_in, three, five_in, five, pool in (
        ("3a", 192, 64, 96, 128, 16, 32, 32),
        ("3b", 256, 128, 128, 192, 32, 96, 64),
        ("4a", 480, 192, 96, 208, 16, 48, 64),
        ("4b", 512, 160, 112, 224, 24, 64, 64),
        ("4c", 512, 128, 128, 256, 24, 64, 64),
        ("4d", 512, 112, 144, 288, 32, 64, 64),
        ("4e", 528, 256, 160, 320, 32, 128, 128),
        ("5a", 832, 256, 160, 320, 32, 128, 128),
        ("5b", 832, 384, 192, 384, 48, 128, 128),
    ):
        at = f"inception{name}"
        shapes |= unit(f"{at}.branch1", inputs, one, 1)
        shapes |= unit(f"{at}.branch2.0", inputs, three_in, 1) | unit(f"{at}.branch2.1", three_in, three, 3)
        shapes |= unit(f"{at}.branch3.0", inputs, five_in, 1) | unit(f"{at}.branch3.1", five_in, five, 3)
        shapes |= unit(f"{at}.branch4.1", inputs, pool, 1)
    for name, inputs in (("aux1", 512), ("aux2", 528)):
        shapes |= unit(f"{name}.conv", inputs, 128, 1)
        shapes |= linear(f"{name}.fc1", 2048, 1024) | linear(f"{name}.fc2", 1024, 1000)
    return shapes


def bn_inception() -> Shapes:
    def unit(name: str, inputs: int, outputs: int, kernel: int) -> Shapes:
        return conv(name, inputs, outputs, kernel, bias=True) | bn(f"{name}_bn", outputs)

    shapes = linear("last_linear", 1024, 1000) | unit("conv1_7x7_s2", 3, 64, 7)
    shapes |= unit("conv2_3x3_reduce", 64, 64, 1) | unit("conv2_3x3", 64, 192, 3)
    for name, inputs, one, three_in, three, double_in, double, pool in (
        ("3a", 192, 64, 64, 64, 64, 96, 32),
        ("3b", 256, 64, 64, 96, 64, 96, 64),
        ("3c", 320, 0, 128, 160, 64, 96, 0),
        ("4a", 576, 224, 64, 96, 96, 128, 128),
        ("4b", 576, 192, 96, 128, 96, 128, 128),
        ("4c", 576, 160, 128, 160, 128, 160, 128),
        ("4d", 608, 96, 128, 192, 160, 192, 128),
        ("4e", 608, 0, 128, 192, 192, 256, 0),
        ("5a", 1056, 352, 192, 320, 160, 224, 128),
        ("5b", 1024, 352, 192, 320, 192, 224, 128),
    ):
        at = f"inception_{name}"
        shapes |= unit(f"{at}_1x1", inputs, one, 1) if one else {}
        shapes |= unit(f"{at}_3x3_reduce", inputs, three_in, 1) | unit(f"{at}_3x3", three_in, three, 3)
        shapes |= unit(f"{at}_double_3x3_reduce", inputs, double_in, 1)
        shapes |= unit(f"{at}_double_3x3_1", double_in, double, 3) | unit(f"{at}_double_3x3_2", double, double, 3)
        shapes |= unit(f"{at}_pool_proj", inputs, pool, 1) if pool else {}
    return shapes
