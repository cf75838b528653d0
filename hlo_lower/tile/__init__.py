"""Tile a module: find what is large, and compute it in loops over tiles, until its temporaries are within a bound.

In the order in which they are used:

    prepare/normalize          inlines calls, makes cheap values for each use
    prepare/slice_hoisting     pulls slices and gathers up through what makes the value that they pick from
    prepare/batched_rows       makes counted rows batching dims
    prepare/rematerialization  computes what scans stack again where it is read
    find/scan_stacks           says who writes and who reads rows of a stack
    prepare/loop_carries       changes what a loop carries
    find/choose                makes plans, the cheapest first
    find/labels                has the large values that belong together, and the dim along which each is cut
    emit/phases                says what each loop computes, what leaves it, what is done again
    emit/emit_loops, loop_body write the loops
    by_hand, into_loop         make the loops that are asked for, or fuse an op into one that is there
    read_loops, loop_form      read loops back into subsets, bodies and yields, as text
    find/measure               asks XLA what it needs
    plan_search                goes on until the bound is reached

`facts/memory` reads a block (`dataflow`) and says what is live at the peak (`liveness`).
"""
