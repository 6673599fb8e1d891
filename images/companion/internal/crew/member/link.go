// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"net"
	"time"

	"github.com/capstan-dev/capstan/images/companion/internal/crew/protocol"
)

// Times of a connection.
const (
	dialTime  = 2 * time.Second
	writeTime = 2 * time.Second
	firstWait = 50 * time.Millisecond
	longWait  = time.Second
)

// A link is a connection with the coordinator.
type link struct {
	conn net.Conn
	// in has what the coordinator says. It is closed when the connection is of no more use.
	in chan protocol.Message
}

// dial the coordinator until it answers. Its name may not be known yet, and its address changes with its pod.
func dial(ctx context.Context, address string) (*link, error) {
	// A pause first, so that a coordinator that ends each connection is not dialled without end.
	for wait := firstWait; ; wait = min(2*wait, longWait) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", address)
		if err == nil {
			l := &link{conn: conn, in: make(chan protocol.Message, 16)}
			go l.read()
			return l, nil
		}
	}
}

func (l *link) read() {
	defer close(l.in)
	reader := protocol.NewReader(l.conn)
	for {
		message, err := reader.Read()
		if err != nil {
			return
		}
		l.in <- message
	}
}

// send a message. A link that fails is closed, and the reader says so.
func (l *link) send(m protocol.Message) {
	err := l.conn.SetWriteDeadline(time.Now().Add(writeTime))
	if err == nil {
		err = protocol.Write(l.conn, m)
	}
	if err != nil {
		_ = l.conn.Close()
	}
}

// master is where ranks reach rank 0, which is in the pod with an index. Of the coordinator's pod it is the address that answers already: to ask
// for its name again would make ranks wait for the DNS, which answers slowly or not at all after the loss of a node. Programs join it with
// the port, and an address of IPv6 would need brackets there.
func (l *link) master(index int, host func(int) string) string {
	if at, ok := l.conn.RemoteAddr().(*net.TCPAddr); ok && index == 0 && at.IP.To4() != nil {
		return at.IP.String()
	}
	return host(index)
}

// close the link and let its reader end.
func (l *link) close() {
	_ = l.conn.Close()
	go func() {
		for range l.in { // Its end ends the reader.
		}
	}()
}
