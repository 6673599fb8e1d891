// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/peers"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/record"
)

const (
	// enterLimit is how long the server may take to enter a group or to leave it. Data is copied after that.
	enterLimit = 3 * time.Minute
	// Pauses after a try that failed. A member that was killed is refused until the group has removed it.
	firstAgain = time.Second
	lastAgain  = 30 * time.Second
	// joiningFor is how long a member that said that it joins keeps its seat without having come.
	joiningFor = 5 * time.Minute
)

// has a server these transactions, executed or received.
func has(l decision.Look) (gtid.Set, error) {
	executed, err := gtid.Parse(l.Executed)
	if err != nil {
		return gtid.Set{}, err
	}
	received, err := gtid.Parse(l.Received)
	return executed.Union(received), err
}

// enter a group, or wait until that is right. It returns the pause before the next look.
func (k *Keeper) enter(ctx context.Context, l decision.Look) time.Duration {
	what, err := k.tryEnter(ctx, l)
	switch {
	case err != nil:
		k.note(err.Error())
		k.pause()
	case what != decision.Wait:
		return soonAgain
	}
	return lookEvery
}

// tryEnter finds out what the others are, decides, and acts. It returns what it did.
func (k *Keeper) tryEnter(ctx context.Context, l decision.Look) (decision.What, error) {
	config, err := layout.ReadConfig()
	if err != nil {
		return decision.Wait, err
	}
	own, err := has(l)
	if err != nil {
		return decision.Wait, err
	}
	// The record first: a claim of another member after this moment fails this one's.
	reading, cancel := context.WithTimeout(ctx, 2*kube.Timeout)
	defer cancel()
	rec, err := k.store.Read(reading)
	if err != nil {
		// Where no other member was in the group none can begin one. A Database with one member needs no API server for it.
		if k.only == l.Server {
			return decision.Begin, k.begin(ctx, k.group)
		}
		return decision.Wait, err
	}
	common, err := k.store.Common(reading)
	if err != nil {
		return decision.Wait, err
	}
	if name := k.restoredBy(common, rec); name != "" && own.Empty() {
		k.say(decision.Entry{Message: fmt.Sprintf("member %s restores a backup, and this one joins it", name)})
		return decision.Wait, nil
	}
	list, err := k.pods.List(reading)
	if err != nil {
		return decision.Wait, err
	}
	hosts := hostsOf(list, rec.View, config.Domain)
	expected := slices.Sorted(maps.Keys(hosts))
	if common.Initialized == "" && config.Volumes != nil {
		expected = *config.Volumes
	}
	seeds := slices.Sorted(maps.Values(hosts))
	delete(hosts, k.names.Name)
	e := decision.Enter(decision.Known{
		Name: k.names.Name, Own: decision.Member{State: decision.Offline, Server: l.Server, Has: own},
		Others: peers.Ask(ctx, k.names.Scope, hosts), Initialized: common.Initialized != "", View: rec.Seats(), Expected: expected,
		Leader: layout.Member(rec.Leader), Epoch: rec.Begin.Epoch, Accepted: common.Accepted,
	})
	group := cmp.Or(rec.Begin.Group, k.names.GroupName(config.Generation))
	k.say(e)
	seat := record.Seat{Name: k.names.Name, Server: l.Server}
	switch e.What {
	case decision.Join:
		k.entering.Store(true)
		defer k.entering.Store(false)
		if err := k.sit(ctx, rec, seat); err != nil {
			return decision.Wait, err
		}
		for i, host := range seeds {
			seeds[i] = layout.Inner(host)
		}
		k.log.Info("joining the group", "name", group, "copy", own.Empty())
		k.group = group
		joining, cancel := context.WithTimeout(ctx, enterLimit)
		defer cancel()
		return decision.Join, k.server.Join(joining, group, seeds, own.Empty())
	case decision.Begin:
		if common.Initialized == "" && own.Empty() {
			if empty, err := k.first(ctx, config, rec); err != nil || !empty {
				return decision.Wait, err
			}
		}
		// Members that ask from now on wait for this one.
		k.entering.Store(true)
		defer k.entering.Store(false)
		if e.Another {
			group = k.names.AnotherGroup(config.Generation, rec.Begin.Epoch+1)
		}
		if err := k.store.Begin(ctx, rec, seat, own.String(), group); err != nil {
			return decision.Wait, err
		}
		if err := k.store.Initialize(ctx, k.names.GroupName(config.Generation)); err != nil {
			return decision.Wait, err
		}
		return decision.Begin, k.begin(ctx, group)
	case decision.Wait:
	}
	return decision.Wait, nil
}

// hostsOf the members that have a pod or a seat, by name.
func hostsOf(list []pods.Pod, view []record.Seat, domain string) map[string]string {
	hosts := map[string]string{}
	for _, p := range list {
		hosts[p.Member] = layout.Host(p.Member, domain)
	}
	for _, s := range view {
		hosts[s.Name] = layout.Host(s.Name, domain)
	}
	return hosts
}

// begin a group with this member alone.
func (k *Keeper) begin(ctx context.Context, group string) error {
	k.log.Info("beginning a group", "name", group)
	k.group = group
	ctx, cancel := context.WithTimeout(ctx, enterLimit)
	defer cancel()
	return k.server.Begin(ctx, group)
}

// sit down among the members of the group before joining it: the record must never lack one that has something to say after an outage. A seat
// that is there already is written again, because the leader may be about to remove it.
func (k *Keeper) sit(ctx context.Context, rec record.Record, own record.Seat) error {
	if len(rec.View) == 0 {
		return errors.New("the leader has not recorded its group yet")
	}
	now := time.Now().UTC().Truncate(time.Second)
	own.Joining = &now
	view := slices.DeleteFunc(slices.Clone(rec.View), func(s record.Seat) bool { return s.Name == own.Name })
	return k.store.Sit(ctx, rec, append(view, own))
}
