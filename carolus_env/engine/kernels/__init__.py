"""The rules as kernels, one game at a time; read them next to the rulebook.

``courts``   paladins between supply, reserves and courts; control of the clans
``regions``  strength, settling, castles and merging
``turns``    set-up, opening phase, action phase, rounds, the end
``legal``    legal actions
``generator`` random numbers

Every kernel works on one record ``s`` of `engine.state.STATE`, in place. Values that enter
arithmetic are read through ``int64()``: the same numbers with the compiler on and off.
"""
