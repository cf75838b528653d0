"""Wrong uses of the package, one a line: a type checker has to find each."""

import hlo_lower as hl

hl.lower("a.mlir", target=3)
hl.lower("a.mlir", oob="none")
hl.verify("a.mlir", "b.mlir", runs="three")
hl.lower("a.mlir").text.casefold(1)
