package servertest

import (
	"bytes"
	"slices"
)

// drop is one lost reply.
type drop struct {
	match []byte        // nil: any request
	taken bool          // by a link
	done  chan struct{} // closed when the reply is lost
}

// DropNextReply loses the reply to the next request on any connection: the request
// is passed on, what the server says next there is thrown away and the connection
// is closed, so the client cannot know whether it happened. A client that greets
// the server on a new connection makes requests too; DropReplyAfter is exact.
//
// Of several requests sent at once on one connection the first reply is lost and
// with it all that follow.
func (p *Proxy) DropNextReply() { p.arm(nil) }

// DropReplyAfter is DropNextReply for the next request that contains match, such as
// the SHA of a script, COMMIT or UPDATE.
func (p *Proxy) DropReplyAfter(match []byte) { p.arm(bytes.Clone(match)) }

func (p *Proxy) arm(match []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop = &drop{match: match, done: make(chan struct{})}
}

// Dropped is closed when the drop that was armed last has happened. It is nil, which
// blocks for ever, when none was armed.
func (p *Proxy) Dropped() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drop == nil {
		return nil
	}
	return p.drop.done
}

func (d *drop) happened() { close(d.done) }

// take gives the armed drop to the caller if request is the one it waits for.
func (p *Proxy) take(request []byte) *drop {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.drop
	if d == nil || d.taken || !bytes.Contains(request, d.match) {
		return nil
	}
	d.taken = true
	return d
}

// overlap is how much of a request a match may begin in.
func (p *Proxy) overlap() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drop == nil {
		return 0
	}
	return max(0, len(p.drop.match)-1)
}

// watch sees each request right before it is written to the server: from there on
// the server's answer is the one to lose. One match may come in two reads.
func (l *link) watch(request []byte) {
	joined := slices.Concat(l.tail, request)
	if d := l.proxy.take(joined); d != nil {
		l.owe(d)
	}
	keep := min(l.proxy.overlap(), len(joined))
	l.tail = bytes.Clone(joined[len(joined)-keep:])
}

func (l *link) owe(d *drop) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done: // closed meanwhile
		d.happened()
	default:
		l.owed = d
	}
}

// deliver says whether a reply is to be passed on. A false ends the link: reading
// stops, what was read before still goes out.
func (l *link) deliver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owed == nil {
		return true
	}
	l.owed.happened()
	l.owed = nil
	return false
}
