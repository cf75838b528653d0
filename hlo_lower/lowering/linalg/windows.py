"""The convolutions and poolings of linalg that have a name, as data: the axes of their operands, letter by letter.

nchw,fcxy->nfhw sums cxy        input[n, c, h * strides[0] + x * dilations[0], w * strides[1] + y * dilations[1]],
                                kernel[f, c, x, y] -> result[n, f, h, w]; c, x, y are summed, y innermost
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hlo_lower.lowering.linalg.index_maps import IndexMap

WINDOW_OF = ({"w": "x"}, {"h": "x", "w": "y"}, {"d": "x", "h": "y", "w": "z"})
"""For one, two and three spatial axes: which letter of the window goes along which."""


@dataclass(frozen=True)
class Windowed:
    """A named op over windows.

    Attributes:
      name: without "linalg.".
      letters: of input, kernel (or window) and result.
      summed: the letters of the loops that are reduced, the outermost first.
    """

    name: str
    letters: tuple[str, str, str]
    summed: str

    def steps(self, maps: tuple[IndexMap, IndexMap, IndexMap]) -> tuple[list[int], list[int]] | None:
        """The strides and dilations with which maps are those of the op; None where they are not."""
        bound = self._bound(maps)
        window = WINDOW_OF[sum(letter in "dhw" for letter in self.letters[0]) - 1]
        if bound is None or len(maps[0]) != len(self.letters[0]):
            return None
        strides: list[int] = []
        dilations: list[int] = []
        for letter, index in zip(self.letters[0], maps[0], strict=True):
            wanted = [bound[one] for one in letter + window.get(letter, "")]
            factors = dict(index)
            if sorted(dim for dim, _ in index) != sorted(wanted):
                return None
            if letter in window:
                strides.append(factors[bound[letter]])
                dilations.append(factors[bound[window[letter]]])
            elif factors[bound[letter]] != 1:
                return None
        return strides, dilations

    def _bound(self, maps: tuple[IndexMap, IndexMap, IndexMap]) -> dict[str, int] | None:
        """Which dim each letter is, from kernel and result, where the reduced ones have the order of the op."""
        bound: dict[str, int] = {}
        for letters, one in zip(self.letters[1:], maps[1:], strict=True):
            if len(letters) != len(one):
                return None
            for letter, index in zip(letters, one, strict=True):
                if len(index) != 1 or index[0][1] != 1 or bound.setdefault(letter, index[0][0]) != index[0][0]:
                    return None
        order = [bound[letter] for letter in self.summed]
        return bound if len(set(bound.values())) == len(bound) and order == sorted(order) else None


def _windowed(told: Mapping[str, str]) -> tuple[Windowed, ...]:
    made: list[Windowed] = []
    for name, text in told.items():
        operands, summed = text.split(" sums ")
        inputs, result = operands.split("->")
        given, kernel = inputs.split(",")
        made.append(Windowed(name, (given, kernel, result), summed))
    return tuple(made)


CONVOLUTIONS = _windowed({
    "conv_1d_ncw_fcw": "ncw,fcx->nfw sums cx",
    "conv_2d_nchw_fchw": "nchw,fcxy->nfhw sums cxy",
    "conv_2d_ngchw_gfchw": "ngchw,gfcxy->ngfhw sums cxy",
    "conv_3d_ncdhw_fcdhw": "ncdhw,fcxyz->nfdhw sums cxyz",
})  # fmt: skip
"""Those with channels last jaxlib's pass names, where it can; its generic ones sum channels outermost, as these do."""

_POOLED = {"nwc": "x", "ncw": "x", "nhwc": "xy", "nchw": "xy", "ndhwc": "xyz"}
_WITHOUT = {"ncw": ("max", "sum"), "nchw": ("max", "sum"), "ndhwc": ("max", "min", "sum")}
_KINDS = ("max", "min", "sum", "max_unsigned", "min_unsigned")

POOLINGS = {
    kind: _windowed({
        f"pooling_{axes}_{kind}": f"{axes},{window}->{axes} sums {window}"
        for axes, window in _POOLED.items() if kind in _WITHOUT.get(axes, _KINDS)
    })
    for kind in _KINDS
}  # fmt: skip
"""By what is done with a window."""
