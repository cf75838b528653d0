"""Tile a module: find what is large, and compute it in loops over tiles, until its temporaries are within a bound.

In the order in which they are used:

    normalize  calls inlined, cheap values made for each use   pulled_up    picks made of what is picked from
    batched_rows  counted rows as batching dims                 recomputed   what scans stack, again where it is read
    scan_stacks, steps_of_counter   who writes and reads rows   carried, sunk   what a loop carries
    dataflow   a block, read: who makes and uses a value       liveness     what is live at the peak
    choose     plans, the cheapest first                       core         the large values that belong together
    labels     the dim along which each is cut                 phases       loops, what leaves them, what is done again
    emit_loops, loop_body, order                               measure      what XLA needs
    plan_search                                                until the bound is reached
"""
