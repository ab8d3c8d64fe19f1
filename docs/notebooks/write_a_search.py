# %% [markdown]
# # Title write_a_search

# %%
import carolus_env as ce

game = ce.Game(seed=1)
game
