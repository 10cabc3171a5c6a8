"""Which layer got slower: two methods on the same operation, and the rule under which a layer is named."""
