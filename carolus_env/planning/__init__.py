"""Planning of whole turns: their plans, the candidates of a decision, a fitted evaluation."""
