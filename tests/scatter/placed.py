"""Modules of one scatter at columns of indices that lines in short notation compute (see untyped_mlir)."""

from untyped_mlir import module, of


def placed(
    lines, columns, order, shape, operand, *, window=None, inserted=None, batching=(), combiner="assign",
    element="f32", index="i32", arguments="",
):  # fmt: skip
    """A module that writes %u into %o at columns, each a tensor of this shape and the place in one operand dim.

    Windows have extent 1 in indexed and batching dims, which are inserted if so, and are whole in others by default.
    """
    fixed = {*order, *batching}
    window = window or [1 if d in fixed else n for d, n in enumerate(operand)]
    inserted = [d for d in sorted(order) if window[d] == 1] if inserted is None else inserted
    kept = [n for d, n in enumerate(window) if d not in (*inserted, *batching)]
    names, m = [f"%column{n}" for n in range(len(columns))], len(shape)
    lines = [lines, *(f"{n} = reshape {c} -> {of((*shape, 1), index)}" for n, c in zip(names, columns, strict=True))]
    if not columns:
        lines.append(f"%at = constant [] : {of((*shape, 0), index)}")
    if len(columns) > 1:
        lines.append(f"%at = concatenate {', '.join(names)}, dim = {m}")
    fields = {
        "window": list(range(m, m + len(kept))), "inserted": list(inserted), "batching": list(batching),
        "indices_batching": list(batching), "to": list(order), "ivd": m,
    }  # fmt: skip
    told = ", ".join(f"{name}={value}" for name, value in fields.items() if value != [])
    body = combiner if combiner.startswith("{") else f"{{{combiner}}}"
    lines.append(f"%r = scatter(%o, {names[0] if len(columns) == 1 else '%at'}, %u) <{told}> {body}")
    given = f"%o: {of(operand, element)}, %u: {of((*shape, *kept), element)}{arguments and f', {arguments}'}"
    return module(given, "\n".join(lines))
