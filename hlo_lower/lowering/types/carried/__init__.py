"""Ops on another element type, exact: unsigned in signed integers, narrow in wide ones, floats in f32."""
