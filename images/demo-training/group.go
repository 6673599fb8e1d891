// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// A contribution of a rank to a step, and the answer to all ranks: the sum, whether any of them leaves, and whether rank 0 wants a checkpoint.
type contribution struct {
	Rank    int    `json:"rank"`
	Attempt int    `json:"attempt,omitempty"`
	Step    int64  `json:"step"`
	Value   uint64 `json:"value"`
	Leaving bool   `json:"leaving,omitempty"`
	Save    bool   `json:"save,omitempty"`
}

// A group of ranks that add numbers up. Rank 0 is connected with all others, and they with it only. As in real trainings, a rank that
// hangs makes all others wait for ever, and one that ends makes them fail.
type group struct {
	world int
	peers []*peer
}

type peer struct {
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

func newPeer(conn net.Conn) *peer {
	return &peer{conn: conn, in: json.NewDecoder(conn), out: json.NewEncoder(conn)}
}

// join the group of an attempt: rank 0 listens until all others are there.
func join(ctx context.Context, rank, world, attempt int, address string, port int) (*group, error) {
	g := &group{world: world}
	if world == 1 {
		return g, nil
	}
	at := net.JoinHostPort(address, strconv.Itoa(port))
	if rank > 0 {
		conn, err := dial(ctx, at)
		if err != nil {
			return nil, fmt.Errorf("cannot reach rank 0: %w", err)
		}
		p := newPeer(conn)
		g.peers = []*peer{p}
		return g, p.out.Encode(contribution{Rank: rank, Attempt: attempt})
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for other ranks: %w", err)
	}
	defer func() { _ = listener.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	there := map[int]bool{}
	for len(there) < world-1 {
		conn, err := listener.Accept()
		if err != nil {
			return nil, fmt.Errorf("only %d of %d ranks are there: %w", len(there)+1, world, err)
		}
		p := newPeer(conn)
		var hello contribution
		if err := p.in.Decode(&hello); err != nil || hello.Attempt != attempt || hello.Rank < 1 || hello.Rank >= world || there[hello.Rank] {
			_ = conn.Close() // It belongs to another attempt.
			continue
		}
		there[hello.Rank] = true
		g.peers = append(g.peers, p)
	}
	return g, nil
}

func dial(ctx context.Context, at string) (net.Conn, error) {
	for {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", at)
		if err == nil {
			return conn, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}

// add up what all ranks contribute to a step.
func (g *group) add(own contribution) (contribution, error) {
	if own.Rank > 0 {
		p := g.peers[0]
		if err := p.out.Encode(own); err != nil {
			return own, fmt.Errorf("cannot reach rank 0: %w", err)
		}
		var sum contribution
		if err := p.in.Decode(&sum); err != nil {
			return own, fmt.Errorf("cannot hear from rank 0: %w", err)
		}
		return sum, inStep(own, sum)
	}
	sum := own
	for _, p := range g.peers {
		var c contribution
		if err := p.in.Decode(&c); err != nil {
			return own, fmt.Errorf("cannot hear from a rank: %w", err)
		}
		if err := inStep(own, c); err != nil {
			return own, err
		}
		sum.Value += c.Value
		sum.Leaving = sum.Leaving || c.Leaving
	}
	for _, p := range g.peers {
		if err := p.out.Encode(sum); err != nil {
			return own, fmt.Errorf("cannot reach a rank: %w", err)
		}
	}
	return sum, nil
}

// inStep reports ranks that resumed from different checkpoints.
func inStep(own, other contribution) error {
	if own.Step != other.Step {
		return fmt.Errorf("rank %d is at step %d, and rank %d at step %d", own.Rank, own.Step, other.Rank, other.Step)
	}
	return nil
}

func (g *group) close() {
	for _, p := range g.peers {
		_ = p.conn.Close()
	}
}
