package guard

// BoundContexts is how many contexts of Bind a lease knows.
func BoundContexts(l *Lease) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bounds)
}

// Queues is how many local queues the store of g has.
func Queues(g *Guard) int {
	g.hub.mu.Lock()
	defer g.hub.mu.Unlock()
	return len(g.hub.queues)
}

// Hubs is how many stores the registry knows.
func Hubs() int {
	hubs.Lock()
	defer hubs.Unlock()
	return len(hubs.byStore)
}
