"""A module as what its ops compute: without names, without the order of ops that do not depend on each other."""

from collections import Counter

from hlo_lower.ir import mlir


def structure(graph):
    """For each function, how often each op stands there.

    An op is told by its name, attributes, types and regions and by what its operands are, all the way up; what is made
    of constants alone counts once, however often it stands there.
    """
    return {name: _of_function(function) for name, function in graph.functions.items() if function.has_body}


def _of_function(function):
    known = {argument: (("argument", number), False) for number, argument in enumerate(function.body.raw.arguments)}
    return _of_block(function.body.raw, known)


def _of_block(block, known):
    found = Counter()
    for op in block.operations:
        told, is_constant = _told(op.operation, known)
        found[told] = 1 if is_constant else found[told] + 1
    return found


def _told(operation, known):
    """What an op computes, as a number; and whether it is made of constants alone."""
    taken, inner = [known[value] for value in operation.operands], []
    for region in operation.regions:
        for block in region.blocks:
            known.update({value: (("inner", number), False) for number, value in enumerate(block.arguments)})
            inner.append(tuple(sorted(_of_block(block, known).items())))
    types = [str(result.type) for result in operation.results]
    told = hash((operation.name, *_attributes(operation), *types, *(one for one, _ in taken), *inner))
    is_constant = len(types) > 0 and not inner and all(constant for _, constant in taken)
    known.update({value: ((told, number), is_constant) for number, value in enumerate(operation.results)})
    return told, is_constant


def _attributes(operation):
    """The attributes as text; the bindings have no form for constants of complex numbers."""
    if operation.name == "stablehlo.constant":
        return [str(operation).split(" = ", 1)[1]]
    return sorted(f"{name} = {attribute}" for name, attribute in mlir.attributes_of(operation).items())
