// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/bouncer"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/certificate"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pods"
)

// Limits of what holds up a PostgreSQL that is about to stop. The lock of the leader lasts much longer.
const (
	leadsLimit = 500 * time.Millisecond
	findLimit  = time.Second
	pauseLimit = bouncer.DrainLimit + time.Second
)

// pauseCmd lets clients of the poolers wait before PostgreSQL stops.
type pauseCmd struct {
	layout.Names
}

// Run asks them, and does not fail: PostgreSQL stops in any case.
func (c *pauseCmd) Run(ctx context.Context, log *slog.Logger) error { //nolint:unparam // Kong wants it so.
	begun := time.Now()
	said, err := c.pause(ctx)
	if err != nil {
		said = "clients of poolers were not told: " + err.Error()
	}
	log.Info(said, "took", time.Since(begun).Round(time.Millisecond).String())
	return nil
}

// pause if this member leads. One that lost the lock has to stop at once: another may lead already.
func (c *pauseCmd) pause(ctx context.Context) (string, error) {
	ask, cancel := context.WithTimeout(ctx, leadsLimit)
	defer cancel()
	leads, err := patroni.New(c.Address(layout.PortPatroni), layout.TLS).HasLock(ask)
	if err != nil {
		return "", err
	}
	if !leads {
		return "this member does not lead, and no client waits for it", nil
	}
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return "", fmt.Errorf("cannot reach the API server: %w", err)
	}
	client, err := pods.New(cfg, c.Namespace, c.Pod, c.Database)
	if err != nil {
		return "", err
	}
	find, cancel := context.WithTimeout(ctx, findLimit)
	defer cancel()
	addresses, err := client.Poolers(find, layout.LabelPooler)
	if err != nil {
		return "", err
	}
	verify, err := certificate.Config(layout.TLS)
	if err != nil {
		return "", err
	}
	verify.ServerName = "localhost" // poolers are asked by address
	ctx, cancel = context.WithTimeout(ctx, pauseLimit)
	defer cancel()
	var (
		mu                     sync.Mutex
		all                    sync.WaitGroup
		waiting, drained, deaf int
		last                   error
	)
	for _, a := range addresses {
		all.Go(func() {
			answer, err := bouncer.Pause(ctx, net.JoinHostPort(a, strconv.Itoa(layout.PortPause)), verify.Clone())
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				deaf, last = deaf+1, err
			case answer.Waits:
				waiting++
				if answer.Drained {
					drained++
				}
			}
		})
	}
	all.Wait()
	said := fmt.Sprintf("clients of %d of %d poolers wait, %d of them with no transaction under way", waiting, len(addresses), drained)
	if deaf > 0 {
		said += fmt.Sprintf("; %d did not answer, the last: %v", deaf, last)
	}
	return said, nil
}
