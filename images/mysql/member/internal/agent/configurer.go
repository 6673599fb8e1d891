// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/loop"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/server"
)

// followEvery is how often the parameters are compared that members set at run time.
const followEvery = 10 * time.Second

// A Configurer sets the parameters that take effect at once, and knows which ones wait for a restart.
type Configurer struct {
	child   func() *process.Child
	store   *record.Client
	server  *mysql.Server
	status  loop.Wakeup
	started func() string
	log     *slog.Logger

	// set are the parameters that were set on one start of the server.
	set  map[string]string
	of   *process.Child
	last string
	// pending are the parameters that wait for a restart.
	pending atomic.Pointer[map[string]any]
}

// PendingRestart has the parameters that take effect at the next start of the server, each with the value that it has and will have.
func (f *Configurer) PendingRestart() map[string]any {
	if p := f.pending.Load(); p != nil {
		return *p
	}
	return nil
}

// once follows, and returns the pause before the next time.
func (f *Configurer) once(ctx context.Context) time.Duration {
	child := f.child()
	if child == nil {
		return followEvery
	}
	if child != f.of {
		f.of, f.set = child, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*kube.Timeout)
	defer cancel()
	err := f.follow(ctx)
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != f.last && text != "" {
		f.log.Warn("cannot set all parameters, trying on", "error", text)
	}
	f.last = text
	if err != nil {
		return retryEvery
	}
	return followEvery
}

func (f *Configurer) follow(ctx context.Context) error {
	common, err := f.store.Common(ctx)
	if err != nil || common.Dynamic == "" {
		return err
	}
	d, err := mysqlmember.ParseDynamic(common.Dynamic)
	if err != nil {
		return err
	}
	started := server.Parameters(f.started())
	change, reset := differing(f.set, d.Parameters, started)
	if err := f.server.Set(ctx, change); err != nil {
		return err
	}
	if err := f.server.Reset(ctx, reset); err != nil {
		return err
	}
	f.set = maps.Clone(d.Parameters)
	mounted, err := os.ReadFile(layout.Base)
	if err != nil {
		return err
	}
	pending := waiting(started, server.Parameters(string(mounted)), d.Parameters)
	before := f.PendingRestart()
	f.pending.Store(&pending)
	if !slices.Equal(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(pending))) {
		f.status.Call()
	}
	return nil
}

// differing are the parameters to set, and those to reset: one that is wanted no more gets the value that the server was started with, if it
// was with one.
func differing(set, want, started map[string]string) (change map[string]string, reset []string) {
	change = map[string]string{}
	for name, value := range want {
		if before, ok := set[name]; !ok || before != value {
			change[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if _, ok := want[name]; ok {
			continue
		}
		if value, ok := started[name]; ok {
			change[name] = value
			continue
		}
		reset = append(reset, name)
	}
	return change, reset
}

// waiting are the parameters of a file that the server was not started with. Those that are set at run time wait for nothing.
func waiting(started, mounted, dynamic map[string]string) map[string]any {
	out := map[string]any{}
	for name, value := range mounted {
		_, set := dynamic[name]
		if before := started[name]; !set && !strings.EqualFold(before, value) {
			out[name] = map[string]string{"old_value": before, "new_value": value}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
