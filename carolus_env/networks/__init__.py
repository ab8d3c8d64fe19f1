"""Neural networks that value positions, and score candidates where they have a policy head.

`tables` and `inputs` say what a network gets, `network` what it computes, as plain NumPy; `forward`
and `backward` are the same as kernels, with gradients; `files` reads and writes models.
"""
