# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images of a folder: which there are, which are held out, and how they are decoded."""

import importlib.util

import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def images(folder):
    spec = importlib.util.spec_from_file_location("image_folder", folder / "image_folder.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def make(tmp_path):
    """Make empty files below a directory."""

    def make(*names, root=tmp_path / "photos"):
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
        return root

    return make


def names(part):
    return [(one.path.rpartition("/")[2], one.label) for one in part]


def test_one_of_ten_images_of_each_class_is_held_out(images, make):
    root = make(
        *(f"dog/{number:02}.JPG" for number in range(21)), "cat/b.png", "cat/a.jpeg", "cat/notes.txt", ".git/x.png"
    )
    found = images.read_folder(root)
    assert found.classes == ["cat", "dog"]
    assert names(found.evaluation) == [("a.jpeg", 0), ("00.JPG", 1), ("10.JPG", 1), ("20.JPG", 1)]
    assert names(found.training)[:3] == [("b.png", 0), ("01.JPG", 1), ("02.JPG", 1)]
    assert len(found.training) == 19


def test_train_and_val_are_taken_as_they_are(images, make):
    root = make("train/a/1.png", "train/b/2.png", "val/a/3.png", "val/b/4.png")
    found = images.read_folder(root)
    assert (names(found.training), names(found.evaluation)) == (
        [("1.png", 0), ("2.png", 1)],
        [("3.png", 0), ("4.png", 1)],
    )


@pytest.mark.parametrize(
    ("there", "sentence"),
    [
        ((), "photos is not there, or is not a directory; on a cluster every node needs it"),
        (("a.png",), "photos/<class> has no image"),
        (("a/1.png", "b/readme.txt"), "photos/b has no image"),
        (("train/a/1.png", "val/b/1.png"), "have different classes: a, b."),
    ],
)
def test_a_folder_without_classes(images, make, tmp_path, there, sentence):
    make(*there)
    with pytest.raises(SystemExit) as ended:
        images.read_folder(tmp_path / "photos")
    assert sentence in str(ended.value)


def test_the_digest_is_of_names_and_classes_only(images, make, tmp_path):
    files = ("a/1.png", "a/2.png", "b/3.png")
    first, second, third = tmp_path / "first", tmp_path / "second", tmp_path / "third"
    make(*files, root=first), make(*reversed(files), root=second), make("a/1.png", "b/2.png", "b/3.png", root=third)
    digests = [images.read_folder(root).digest() for root in (first, second, third)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_for_evaluation_the_middle_is_shrunk_and_normalized(images, tmp_path, suffix):
    path = tmp_path / f"image.{suffix}"
    image = Image.new("RGB", (400, 200), (0, 0, 0))
    image.paste((255, 128, 0), (100, 0, 300, 200))
    image.save(path)
    pixels, number = images.Images([images.Labelled(str(path), 7)], 16, training=False)[0]
    assert (number, tuple(pixels.shape), pixels.dtype) == (7, (3, 16, 16), torch.float32)
    expected = [
        (value / 255 - mean) / deviation
        for value, mean, deviation in zip((255, 128, 0), images.MEAN, images.DEVIATION, strict=True)
    ]
    middle = pixels[:, 2:14, 2:14]
    assert middle.mean((1, 2)).tolist() == pytest.approx(expected, abs=0.05)
    assert middle.std((1, 2)).max() < 0.05


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK", "1"])
def test_images_of_every_kind_have_three_colours(images, tmp_path, mode):
    path = tmp_path / ("image.jpg" if mode == "CMYK" else "image.png")
    Image.new(mode, (20, 30)).save(path)
    assert images.Images([images.Labelled(str(path), 0)], 8, training=False)[0][0].shape == (3, 8, 8)


@pytest.mark.parametrize("size", [(1, 1), (1000, 10), (333, 500)])
def test_random_boxes_lie_within_the_image(images, size):
    torch.manual_seed(1)
    for _number in range(500):
        left, upper, right, lower = images.random_box(*size)
        assert 0 <= left < right <= size[0] and 0 <= upper < lower <= size[1]
        if size == (333, 500):
            assert (right - left) * (lower - upper) >= 0.249 * size[0] * size[1]


def test_training_images_differ_from_time_to_time_and_evaluation_images_do_not(images, tmp_path):
    path = tmp_path / "image.png"
    Image.linear_gradient("L").save(path)
    for training in (True, False):
        torch.manual_seed(1)
        one = images.Images([images.Labelled(str(path), 0)], 16, training=training)
        assert torch.equal(one[0][0], one[0][0]) != training


def test_a_broken_image_is_named(images, tmp_path):
    path = tmp_path / "image.png"
    Image.linear_gradient("L").save(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(RuntimeError, match="image.png cannot be decoded: "):
        images.Images([images.Labelled(str(path), 0)], 16, training=False)[0]
