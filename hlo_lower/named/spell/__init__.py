"""Named ops as a target spells them: its composites in the place of ours, or the plain ops.

spelling       a module: for each composite of ours the entry of the target that takes it, else it is written out; which
               entry, and why none; attributes in the target's spelling
adapters       a composite on other operands, whose decomposition computes what the first one did, bit for bit; those of
               norms: sizes in the place of axes, channels last
attention      adapter: axes in the target's order, masks as additions, groups of heads
axis_letters   the layout of an attention, read
added_mask     masks as additions, and which values a mask may have
other_names    composites of others, read: ours where they are seen to be that op, else as they were
"""
