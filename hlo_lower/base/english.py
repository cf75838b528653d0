"""Causes in English: the one place where what was found becomes a sentence, for whoever reads it.

A code has a template with its fields, or a function of its cause where the words depend on what the fields hold. Fields
that are causes are put into words first. Nothing reads these sentences but people.
"""

from collections.abc import Callable, Iterable, Mapping

from hlo_lower.base.causes import Cause, Code, Value


def phrase(cause: Cause) -> str:
    """A cause in words, with its place: "clamped to [0, 63] at llama.py:88"."""
    words = WORDS[cause.code]
    if isinstance(words, str):
        values = zip(cause.code.fields, cause.values, strict=True)
        text = words.format(**{name: phrase(value) if isinstance(value, Cause) else value for name, value in values})
    else:
        text = words(cause)
    return f"{text} at {cause.at}" if cause.at else text


def kind_phrase(cause: Cause) -> str:
    """A cause that stands for many (`Cause.kind`): "argument", "result of gather", "dynamic shape"."""
    words = KINDS.get(cause.code)
    return phrase(cause) if words is None else words.format(**_fields(cause))


def join_phrases(causes: Iterable[Cause]) -> str:
    """Several causes, one after the other: "offsets=runtime, needs constant; strategy=mask, needs many"."""
    return "; ".join(map(phrase, causes))


def refusal(cause: Cause) -> str:
    """Why a target refuses an op that stands in a module: the note of its file where there is one."""
    match cause.code:
        case Code.REFUSES_OPS | Code.REFUSES_DTYPE:
            return str(cause["note"] or "not accepted")
        case Code.REFUSES_OP_ON:
            return f"not accepted on {_join_items(cause, 'dtypes')}"
        case _:
            return phrase(cause)


def shape_text(shape: Iterable[int | None], dtype: str = "") -> str:
    """A shape as MLIR writes it ("1x8x?xf32"); "scalar" for rank 0 without a dtype."""
    sizes = ["?" if size is None else str(size) for size in shape]
    return "x".join([*sizes, dtype] if dtype else sizes) or "scalar"


def _items(value: Value) -> tuple[Value, ...]:
    assert isinstance(value, tuple)
    return value


def _join_items(cause: Cause, field: str, between: str = ", ") -> str:
    return between.join(map(str, _items(cause[field])))


def _fields(cause: Cause) -> dict[str, Value]:
    return dict(zip(cause.code.fields, cause.values, strict=True))


def _last_index(cause: Cause) -> str:
    size = cause["of"]
    assert isinstance(size, int)
    return f"top_k of {size}: in [0, {size - 1}]"


def _guard_phrase(cause: Cause) -> str:
    source = cause.cause("source")
    return "guarded" if source.code is Code.NOT_KNOWN else f"guarded: {phrase(source)}"


def _merge_phrase(cause: Cause) -> str:
    windows = "one window" if cause["windows"] == 1 else f"{cause['windows']} windows merged into one"
    return windows + {"operand": " of the operand's shape at 0", "element": " of one element"}.get(
        str(cause["into"]), ""
    )


def _places(cause: Cause) -> str:
    parts = "constant indices" if cause["constant"] else "indices by how they are computed"
    places = "a permutation of the rows" if cause["permutation"] else "different places"
    return f"{parts}: {places}" + (", ascending" if cause["ascending"] else "")


def _form(cause: Cause) -> str:
    """ "a runtime base + p0", "16 * p0 + p1", "placed by gather"; negative ones moved up where they are."""
    parts = [f"placed by {phrase(cause.cause('placed_by'))}"] if cause["placed_by"] else []
    parts += ["a runtime base"] if cause["based"] else []
    for term in _items(cause["terms"]):
        dim, coefficient = _items(term)
        sign = {1: "", -1: "-"}.get(coefficient if isinstance(coefficient, int) else 0, f"{coefficient} * ")
        parts.append(f"{sign}p{dim}")
    if cause["constant"] or not parts:
        parts.append(str(cause["constant"]))
    moved = cause["moved_up"]
    return " + ".join(parts) + ("" if moved is None else f", negative ones moved up by {moved}")


def _loose(cause: Cause) -> str:
    reason = cause.cause("reason")
    form = f"dim {reason['dim']} is {phrase(reason.cause('form'))}" if reason.code is Code.COLUMN else phrase(reason)
    return f"p{cause['position']} is loose: {form}"


def _kept_phrase(cause: Cause) -> str:
    last = ", and no lowering" if cause["last_resort"] else ""
    return "kept: {target} accepts it as it is ({combiner} on {dtype})".format(**_fields(cause)) + last


def _became(cause: Cause) -> str:
    claim = cause["claim"]
    became = f"{cause['form']} ({cause['rule']})" if cause["rule"] else str(cause["form"])
    return f"{became}: {phrase(claim)}" if isinstance(claim, Cause) else became


def _lacks(cause: Cause) -> str:
    causes = "; ".join(phrase(inner) for inner in _items(cause["causes"]) if isinstance(inner, Cause))
    return f"{cause['rule']}: {causes}" if cause["rule"] else causes


def _no_form_taken(cause: Cause) -> str:
    nearest = [phrase(inner) for inner in _items(cause["nearest"]) if isinstance(inner, Cause)]
    return "; ".join([f"{cause['target']} accepts no form of it", *nearest])


ROUTINES = {
    "syevd": "eigenvectors are read that it is not asked for",
    "gtsv": "what it leaves of the diagonals is read",
    "gesdd": "what it leaves of the matrix is read, or vectors that it is not asked for",
    "geev": "the eigenvalues of a matrix that is not symmetric have no order, and there is no rule for them: use eigh "
    "where it is symmetric, else compute them outside of the module",
    "gees": "a Schur form is not the only one, and there is no rule for it: compute it outside of the module",
    "gehrd": "there is no rule for a Hessenberg form",
    "complex": "it is of complex numbers",
}
"""Why a routine of LAPACK has no rule."""


def _routine_left(cause: Cause) -> str:
    routine = str(cause["routine"])
    return ROUTINES.get(routine, f"no rule is known for LAPACK's {routine}")


def _with_note(cause: Cause, text: str) -> str:
    note = cause["note"] if "note" in cause.code.fields else None
    return f"{text}, which {cause['target']} rejects" + (f": {note}" if note else "")


def _refuses_dtype(cause: Cause) -> str:
    needed = f"emits {cause['op']} on {cause['dtype']}" if cause["op"] else f"needs {cause['dtype']}"
    return _with_note(cause, needed)


WORDS: Mapping[Code, str | Callable[[Cause], str]] = {
    Code.OPERATION: "{op}",
    Code.CONSTANT: "constant",
    Code.IOTA: "iota 0..{last}",
    Code.CLAMPED: "clamped to [{low}, {high}]",
    Code.ASSUMED: "assumed to lie in [{low}, {high}]",
    Code.MINIMUM: "minimum",
    Code.MAXIMUM: "maximum",
    Code.MASKED: "masked",
    Code.REMAINDER: "remainder by at most {divisor}",
    Code.ONES: "at most {most} ones",
    Code.NORMALISED: "normalised to [{low}, {high}]",
    Code.SORTED: "sorted",
    Code.TOP_K: "top_k",
    Code.TOP_K_INDICES: _last_index,
    Code.FOLDED: "one of the values that it folds, in [{low}, {high}]",
    Code.SUMMED: "a sum of at most {terms}, in [{low}, {high}]",
    Code.SCATTERED: "scattered, in [{low}, {high}]",
    Code.ADDED: "at most {terms} added to each, in [{low}, {high}]",
    Code.KNOWN_POINTS: "points at known places",
    Code.COUNTED: "grows by a known step while the condition holds: [{low}, {high}]",
    Code.KEPT_WITHIN: "stays in [{low}, {high}] in each iteration",
    Code.RUNNING_SUM: "a running sum, at most {most}",
    Code.KNOWN_FLOATS: "a comparison of known floats",
    Code.AT_EACH_CALL: "holds at each of {calls} calls of @{function}",
    Code.BRANCHES: "one of {branches} branches",
    Code.NOT_BOUNDED: "not bounded: {source}",
    Code.ARGUMENT: lambda cause: f"argument {cause['name'] or '{number} of @{function}'.format(**_fields(cause))}",
    Code.ARGUMENT_OF: "argument of {op}",
    Code.CARRIED_BY: "carried by {op}",
    Code.RESULT_OF: "{op}",
    Code.RESULT_OF_CALL: "result of @{function}",
    Code.NEVER_CALLED: "@{function} is never called",
    Code.TOO_FAR: "more than {steps} steps from its source",
    Code.TOO_LARGE: "more than {elements} elements",
    Code.TOO_MANY_TERMS: "a sum of more than {terms}",
    Code.OUT_OF_BUDGET: "more steps than the budget of the analysis",
    Code.OVERHANGS: "overhangs",
    Code.SIZE_AT_RUN_TIME: "a size is known at run time only",
    Code.NOT_KNOWN: "not known",
    Code.SUM: "sum",
    Code.MOVED_UP: "negative ones moved up by {offset}",
    Code.SORTED_ALONG: "sorted along dim {dim}",
    Code.DISTINCT_OR_WITHIN: "distinct, or in [{low}, {high}]",
    Code.PICKED: "the indices of {count} of {of}",
    Code.GATHERED_APART: "gathered at different places",
    Code.WRITTEN_ONCE: "each row written once",
    Code.RUNNING_STEPS: "a running sum of at least {step} each, at most {most}",
    Code.SLICES_APART: "slices that do not overlap",
    Code.PROVED: lambda cause: f"proved ({cause['by']})" if cause["by"] else "proved",
    Code.GUARDED: _guard_phrase,
    Code.ASSUMED_INSIDE: "assumed, not verified",
    Code.NOTHING_IN_BOUNDS: "nothing in bounds",
    Code.POLICY: "under oob={oob}",
    Code.START_WITHIN: lambda cause: (
        f"dim {cause['dim']}: start in [0, {cause['last']}] {'proved' if cause['proved'] else 'not proved'}"
    ),
    Code.START_ZERO: "dim {dim}: start 0 proved, and no window is larger than its operand",
    Code.START_BEYOND: "dim {dim}: start in [{low}, {high}], not proved to be in [0, {last}]",
    Code.START_OF_UNKNOWN_SIZE: "dim {dim}: not proved, since a size is known at run time only",
    Code.NO_INDEXED_DIM: "no dim is indexed: the start is 0",
    Code.NO_WINDOWS: "no index vectors, an empty window or an empty operand",
    Code.ALL_DROPPED: "every window is dropped",
    Code.ONE_WINDOW: "one window",
    Code.MERGED: _merge_phrase,
    Code.RUN_OF_ROWS: lambda cause: f"a range of {_join_items(cause, 'sizes', ' by ')} rows, base + iota",
    Code.WINDOW_PER_BATCH: "one window for each batch coordinate",
    Code.SINGLE_ELEMENTS: "{windows} windows of one element",
    Code.WHOLE_ROWS: "{windows} rows: extent 1 in the indexed dims, whole in the others",
    Code.WINDOWS_OF: lambda cause: (
        f"{cause['windows']} windows of shape {_join_items(cause, 'shape', 'x') or 'scalar'}"
    ),
    Code.SIZES_AT_RUN_TIME: "sizes are read at run time; --bind gives them before lowering",
    Code.WITHOUT_SIZES: "as far as it is known without sizes",
    Code.RETURNS_CURRENT: "returns the current value",
    Code.RETURNS_CONSTANT: "depends on neither the current value nor the update",
    Code.RETURNS_UPDATE: "returns the update",
    Code.OF_UPDATE: "depends on the update alone",
    Code.OF_CURRENT: "depends on the current value alone",
    Code.COMBINED_BY: "{op} of the current value and the update",
    Code.SUBTRACTED: "the update is subtracted from the current value",
    Code.COMPUTED_BY: lambda cause: f"computed by {cause['op'] or 'another operand'}",
    Code.NOTHING_WRITTEN: "nothing is written",
    Code.ROWS_OF_RUN: "rows of a range",
    Code.CONSTANTS_DIFFER: "constant indices, all different",
    Code.CONSTANTS_MEET: "constant indices, some equal",
    Code.PLACES: _places,
    Code.FLAG_TRUSTED: "unique_indices = true, trusted (--trust-flags)",
    Code.FLAG_CLAIMED: "unique_indices = true claims it; a claim proves nothing without --trust-flags",
    Code.NO_CLAIM: "runtime indices, no claim",
    Code.FORM: _form,
    Code.COLUMN: "dim {dim}: {form}",
    Code.LOOSE: _loose,
    Code.SAME_PLACE: "every position combines with the same place",
    Code.SEVERAL_DIMS: lambda cause: f"dims {_join_items(cause, 'dims')} move along it",
    Code.SECOND_RUN: "dim {dim} is a row range along another dim",
    Code.TOO_MANY_WRAPPED: "more than {most} row ranges may come in two parts",
    Code.ORDER_WOULD_CHANGE: "merging it would change the order of windows that may meet",
    Code.WINDOW_EXTENT: "windows of extent {extent} in dim {dim} overlap or leave gaps",
    Code.STRIDE: "dim {dim} moves by {stride} from one position to the next",
    Code.MOVED_UP_TOO_LITTLE: "negative indices of dim {dim} are moved up by {offset}, less than its extent {extent}",
    Code.MAY_WRAP: "dim {dim} may wrap around in {type} and come back inside",
    Code.OTHER_VALUE: "{what} is that of another value, or of other rows",
    Code.OTHER_AXES: "{one} and {other} go over different axes",
    Code.OTHER_CONSTANT: "a constant is not {expected} as the element type rounds it",
    Code.NAMED_OP_LACKS: "it lacks {what}",
    Code.COSTS: lambda cause: f"{cause['strategy']}: about {cause['us']:.3g} us",
    Code.CHOSEN: lambda cause: f"drops {cause['drops']}" + (f", by {cause['place']}" if cause["place"] else ""),
    Code.KEPT: _kept_phrase,
    Code.KEPT_AS_FASTER: "kept: native is faster here than a loop ({combiner} on {dtype})",
    Code.TAKEN_WHOLE: "{target} accepts it",
    Code.KEPT_ON_REQUEST: "kept on request (--only, --skip)",
    Code.KEPT_UNSUPPORTED: "kept, no lowering: stablehlo.scatter: {reason}",
    Code.NO_LOWERING: "no lowering for target {target}",
    Code.DYNAMIC_SHAPE: "dynamic shape {type}",
    Code.QUANTIZED: "quantized element type {type}",
    Code.INDEX_ELEMENTS: "index element type, which stablehlo.convert does not accept",
    Code.SIDE_EFFECT: lambda cause: (
        f"a side effect in the update computation: {cause['op']}" + (f" @{cause['callee']}" if cause["callee"] else "")
    ),
    Code.UNREDUCED: "its result is unreduced",
    Code.HOLDS_KEPT: "its update computation holds scatter #{scatter} at {location}, which is kept",
    Code.BECAME: _became,
    Code.PLACED_ON_ONE_DEVICE: "removed, because it says where values live, and the module is for one device",
    Code.RUN_FOR_ALL_DEVICES: "written for one of several devices, and computed for all of them on one",
    Code.NO_FORM_TAKEN: _no_form_taken,
    Code.LACKS: _lacks,
    Code.ON_TYPES: lambda cause: f"element types {_join_items(cause, 'types')}: {phrase(cause.cause('reason'))}",
    Code.NEEDS_SIZES: "of dynamic shape: --bind gives the sizes",
    Code.ONLY_CLAMPED: "of dynamic shape, which is only clamped: --bind gives the sizes",
    Code.NO_CANONICAL_GATHER: "its element type, or an empty window, is not lowered",
    Code.COMPARATOR_NOT_READ: (
        "its comparator is not read as a strict weak order of keys: floats need compare_type TOTALORDER (NaN), and "
        "several keys the form lt(a) or (eq(a) and lt(b))"
    ),
    Code.KEY_NOT_READ: (
        "a key of its comparator is not computed elementwise from integers and floats of 16, 32 or 64 bits"
    ),
    Code.MORE_THAN_I32: "more elements than i32 can count",
    Code.UNROLLED_TOO_LARGE: "unrolled, it has more than {most:,} ops (--max-unroll)",
    Code.TRIPS_NOT_KNOWN: "constants do not say how often it runs, and nothing bounds it",
    Code.TRIP_WITH_EFFECT: "a turn that may not be made may have an effect",
    Code.BRANCH_WITH_EFFECT: "a branch may have an effect, which would happen each time",
    Code.LOOP_IN_BRANCH: "all branches would be computed, and in one there is a loop: {reason}",
    Code.NOT_SEEN_TO_BE: "its decomposition is not recognised as a {meaning} along its axis",
    Code.OTHER_VERSION: "its version is {version}",
    Code.OTHER_ATTRIBUTES: lambda cause: f"it has unknown attributes: {_join_items(cause, 'names')}",
    Code.CALLS_UNKNOWN: "no op of StableHLO or CHLO is known for it",
    Code.CALLS_PYTHON: "it calls back into the Python process that traced the function (pure_callback, io_callback, "
    "debug.print, a check that raises): export the function without that",
    Code.CALLS_CHECK_OF_SIZE: "JAX checks a size with it; --bind gives the sizes, checks them and removes it",
    Code.ENCODED_OTHERWISE: "its encoding has version {version}; only 1 is known",
    Code.NAME_IN_DOUBT: "its {attribute} may change what its name says",
    Code.NOT_UNARY: "it does not map one tensor to one of the same type",
    Code.NOT_TOP_K: "it does not map one tensor and k to values and indices",
    Code.TOP_K_OF_SMALLEST: "it looks for the smallest values, for which chlo.top_k has no form",
    Code.ROUTINE_LEFT: _routine_left,
    Code.OTHER_ROUNDINGS: "it would round otherwise than LAPACK, which needs --float-mode reassociate",
    Code.MISSES: lambda cause: f"{cause['fact']}={cause['value']}, needs {_join_items(cause, 'accepted', '|')}",
    Code.NEEDS: "needs {condition}",
    Code.SAID: "{text}",
    Code.LESS_SPECIFIC: "less specific than {than}",
    Code.PREFERRED: "{rule} is preferred",
    Code.REFUSES_OPS: lambda cause: _with_note(cause, f"emits {_join_items(cause, 'ops')}"),
    Code.REFUSES_OP_ON: lambda cause: (
        f"emits {cause['op']}, which {cause['target']} rejects for {_join_items(cause, 'dtypes')}"
    ),
    Code.REFUSES_DTYPE: _refuses_dtype,
}
"""Each code in words."""

KINDS: Mapping[Code, str] = {
    Code.ARGUMENT: "argument",
    Code.RESULT_OF: "result of {op}",
    Code.RESULT_OF_CALL: "result of a call",
    Code.NEVER_CALLED: "argument of a function that is never called",
    Code.AT_EACH_CALL: "argument of a function",
    Code.BRANCHES: "one of several branches",
    Code.TOO_FAR: "too many steps from its source",
    Code.TOO_LARGE: "too many elements",
    Code.DYNAMIC_SHAPE: "dynamic shape",
    Code.QUANTIZED: "quantized element type",
    Code.HOLDS_KEPT: "its update computation holds a scatter that is kept",
}
"""Codes that stand for many, where their words have fields that differ from one to the next."""

MEANINGS: Mapping[tuple[str, str], str] = {
    ("drops", "nothing"): "no update is ever dropped",
    ("drops", "windows"): "a window that leaves the operand is dropped whole",
    ("drops", "elements"): "elements outside are dropped one by one; the others of their window are written",
    ("parts", "one"): "nothing wraps around",
    ("parts", "several"): "a row range wraps around, and is written in parts",
    ("order", "free"): "updates of one element may be combined in any order",
    ("order", "kept"): "updates of one element are combined in their order",
    ("arity", "single"): "one operand",
    ("arity", "separable"): "several operands, each computed by itself",
    ("arity", "coupled"): "several operands, whose results need each other",
    ("oob", "xla"): "by option: whole windows are dropped",
    ("oob", "spec"): "by option: single elements are dropped",
    ("float_mode", "exact"): "by option: sums of floats keep their order",
    ("float_mode", "reassociate"): "by option: sums of floats may be in another order",
    ("dialect", "stablehlo"): "the target's dialect",
    ("dialect", "linalg"): "the target's dialect",
}
"""What the values of facts mean that have no evidence: they follow from other facts, or were asked for."""

LEGEND = "p0, p1, ... are the positions along the scatter dims"
"""What comes before the lines about a layout, which speak of positions."""
