// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// A writer inserts rows through the member that has the label of the leader, as a client of the Service does, and keeps a ledger
// of those that were acknowledged.
type writer struct {
	ledger
}

// patience of a client with one connection or statement. Disks of machines that test many things at a time take a second at
// times.
const patience = 4 * time.Second

// write until the test ends or stop is called.
func (c *cluster) write() *writer {
	ctx, stop := context.WithCancel(c.t.Context())
	w := &writer{ledger{c: c, stop: stop}}
	w.all.Go(func() { w.run(ctx) })
	return w
}

func (w *writer) run(ctx context.Context) {
	var conn *pgx.Conn
	var to string
	var last time.Time
	drop := func() {
		if conn != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			_ = conn.Close(ctx)
			conn = nil
		}
	}
	defer drop()
	for ctx.Err() == nil {
		err := func() error {
			one, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			leader := w.c.leader()
			if conn != nil && leader != to && leader != "" {
				drop() // a proxy would keep it, and the server end it
			}
			if conn == nil {
				if leader == "" {
					return errors.New("no pod has the label of the leader")
				}
				c, err := w.c.connect(one, leader, "shop")
				if err != nil {
					return err
				}
				conn, to = c, leader
				w.connected()
			}
			id := w.number()
			if _, err := conn.Exec(one, "insert into public.ledger (id) values ($1)", id); err != nil {
				return err
			}
			last = w.ack(id, last)
			return nil
		}()
		if err != nil && ctx.Err() == nil {
			drop()
			w.fail(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
