"""Ops on another element type than their own, exact: unsigned in signed integers, narrow in wide ones, floats in f32."""
