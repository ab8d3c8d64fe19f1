"""Planning of whole turns: their plans (`plans`), what a decision is among (`choices`), and a
fitted evaluation of positions (`evaluation`)."""
