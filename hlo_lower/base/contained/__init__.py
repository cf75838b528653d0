"""Containment: what an input that kills or hangs the parser may cost, and who says so.

jaxlib's parser and its bindings abort on some damaged modules, overflow the stack on deeply nested ones and need
minutes for others, and no `except` catches that. So a process that reads what it cannot trust has another beside it:

- the command line works in a child of a parent that has not imported JAX (`supervisor`), to whom it tells what it
  reads, and that it lowers, on a board that both see (`board`); both have limits of time and memory;
- a library call first has a child read what could kill the process (`prober`; the child is `hlo_lower.ir.probe`).
"""
