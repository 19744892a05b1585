package kind

// Nodes lets a test change which nodes are taken for the control plane's, and returns those that are.
func (c *Cluster) Nodes(change ...string) []string {
	was := c.nodes
	if len(change) > 0 {
		c.nodes = change
	}
	return was
}
