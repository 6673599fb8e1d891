// SPDX-License-Identifier: Apache-2.0

package bouncer

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// Limits of what holds up a PostgreSQL that is about to stop. The lock of the leader lasts much longer.
const (
	findLimit  = time.Second
	pauseLimit = DrainLimit + time.Second
)

// PauseAll poolers of the Database of a member, so that their clients wait while it has no leader, and return what became of it
// for the log.
func PauseAll(ctx context.Context, k kube.Client, names layout.Names) string {
	said, err := pauseAll(ctx, pods.New(k, names.Namespace, names.Pod, names.Database))
	if err != nil {
		return "clients of poolers do not wait: " + err.Error()
	}
	return said
}

func pauseAll(ctx context.Context, client *pods.Client) (string, error) {
	find, cancel := context.WithTimeout(ctx, findLimit)
	defer cancel()
	addresses, err := client.Poolers(find, members.LabelPooler)
	if err != nil {
		return "", err
	}
	verify, err := certificate.Config(pgmember.FolderTLS)
	if err != nil {
		return "", err
	}
	verify.ServerName = "localhost" // requests go to addresses
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
			answer, err := Pause(ctx, net.JoinHostPort(a, strconv.Itoa(pgmember.PortPause)), verify.Clone())
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
