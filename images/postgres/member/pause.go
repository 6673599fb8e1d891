// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/bouncer"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/certificate"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pods"
)

// Limits of what holds up a PostgreSQL that is about to stop. The lock of the leader lasts much longer.
const (
	findLimit  = time.Second
	pauseLimit = bouncer.DrainLimit + time.Second
)

// pausePoolers of the Database of a member, so that their clients wait while it has no leader, and say how many do.
func pausePoolers(ctx context.Context, c layout.Names) (string, error) {
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
