// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/durable"
	"github.com/capstan-dev/capstan/images/member/kube"
	"github.com/capstan-dev/capstan/images/member/pods"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
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
	at, err := k.around(ctx, config)
	if err != nil {
		// Where no other member was in the group none can begin one. A Database with one member needs no API server for it.
		if k.only == l.Server {
			return decision.Begin, k.begin(ctx, k.group)
		}
		if at.hosts = k.recall(); len(at.hosts) == 0 {
			return decision.Wait, err
		}
		k.note(err.Error() + ": joining by what other members say, if they prove a majority")
		at.blind = true
	}
	hosts := maps.Clone(at.hosts)
	delete(hosts, k.names.Name)
	others := peers.Ask(ctx, k.names.Scope, hosts)
	rec := at.rec
	initialized := at.common.Initialized != "" || config.Begun
	e := decision.Enter(decision.Known{
		Name: k.names.Name, Own: decision.Member{State: decision.Offline, Server: l.Server, Has: own},
		Others: others, Initialized: initialized, View: rec.Seats(), Expected: at.expected, Pods: at.pods,
		GroupName: k.names.GroupName(config.Generation), Blind: at.blind,
		Leader: rec.LastLeader(), Epoch: rec.Begin.Epoch, Accepted: at.common.Accepted, Unreached: k.unreached(ctx, others, at),
	})
	group := cmp.Or(rec.Begin.Group, e.GroupName, k.names.GroupName(config.Generation))
	k.say(e)
	seat := record.Seat{Name: k.names.Name, Server: l.Server}
	switch e.What {
	case decision.Join:
		address := k.names.IP
		if decision.ByName(others) {
			address = layout.Host(k.names.Name, config.Domain)
		}
		return decision.Join, k.join(ctx, at, seat, mysql.Entry{Group: group, Address: layout.Inner(address), Clone: own.Empty()})
	case decision.Begin:
		if !initialized && own.Empty() {
			if empty, err := k.first(ctx, config, rec, l.Server); err != nil || !empty {
				return decision.Wait, err
			}
		}
		if e.Another {
			group = layout.AnotherGroup()
		}
		return k.claim(ctx, config.Generation, rec, seat, own, group)
	case decision.Wait:
	}
	return decision.Wait, nil
}

// unreached are the members of a group that others prove which this member does not reach, at the port at which they hear from each other, if its
// last try to stay in the group failed. A lost member is in that group for 40 s at most.
func (k *Keeper) unreached(ctx context.Context, others map[string]decision.Member, at surroundings) []string {
	if k.again == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var dialed sync.WaitGroup
	var mu sync.Mutex
	var out []string
	for _, name := range decision.Proven(others) {
		if name == k.names.Name {
			continue
		}
		dialed.Go(func() {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", layout.Inner(cmp.Or(at.addresses[name], at.hosts[name])))
			if err == nil {
				_ = conn.Close()
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, name)
		})
	}
	dialed.Wait()
	slices.Sort(out)
	return out
}

// claim in the record that this member begins a group, and begin it.
func (k *Keeper) claim(ctx context.Context, generation int, rec record.Record, seat record.Seat, own gtid.Set, group string) (decision.What, error) {
	// Members that ask from now on wait for this one.
	k.entering.Store(true)
	defer k.entering.Store(false)
	if err := k.store.Begin(ctx, rec, seat, own.String(), group); err != nil {
		return decision.Wait, err
	}
	if err := k.store.Initialize(ctx, k.names.GroupName(generation)); err != nil {
		return decision.Wait, err
	}
	k.blind.Store(nil)
	return decision.Begin, k.begin(ctx, group)
}

// surroundings of a member: what is recorded, and where other members are.
type surroundings struct {
	rec    record.Record
	common record.Common
	// hosts by the names of members that have a pod or a seat, pods the members that have one, and expected those that have to answer when
	// nothing is recorded.
	hosts          map[string]string
	pods, expected []string
	// addresses of the pods of members, by the member's name.
	addresses map[string]string
	// blind reports that the API server does not answer, so that only hosts are known.
	blind bool
}

// around this member, as the API server knows it.
func (k *Keeper) around(ctx context.Context, config mysqlmember.Config) (at surroundings, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*kube.Timeout)
	defer cancel()
	// The record first: a claim of another member after this moment fails this one's.
	if at.rec, err = k.store.Read(ctx); err != nil {
		return at, err
	}
	if at.common, err = k.store.Common(ctx); err != nil {
		return at, err
	}
	list, err := k.pods.List(ctx)
	if err != nil {
		return at, err
	}
	at.pods, at.addresses = membersOf(list), addressesOf(list)
	at.hosts = hostsOf(at.pods, at.rec.View, config.Domain)
	at.expected = slices.Sorted(maps.Keys(at.hosts))
	if at.common.Initialized == "" && !config.Begun && config.Volumes != nil {
		at.expected = *config.Volumes
	}
	k.remember(at.hosts)
	return at, nil
}

// remember where other members are, also for a program that starts again in the same pod.
func (k *Keeper) remember(hosts map[string]string) {
	if maps.Equal(hosts, k.hosts) {
		return
	}
	k.hosts = maps.Clone(hosts)
	raw, err := json.Marshal(hosts)
	if err == nil {
		err = durable.Write(layout.Hosts, raw)
	}
	if err != nil {
		k.note(err.Error())
	}
}

// recall where other members were when the API server answered last.
func (k *Keeper) recall() map[string]string {
	if len(k.hosts) == 0 {
		// Without the file nothing is known.
		if raw, err := os.ReadFile(layout.Hosts); err == nil {
			_ = json.Unmarshal(raw, &k.hosts)
		}
	}
	return maps.Clone(k.hosts)
}

// join the group that others are in.
func (k *Keeper) join(ctx context.Context, at surroundings, seat record.Seat, e mysql.Entry) error {
	k.entering.Store(true)
	defer k.entering.Store(false)
	ctx, cancel := context.WithTimeout(ctx, enterLimit)
	defer cancel()
	weight := mysql.WeightUsual
	if at.blind {
		// It must not lead before it has a seat, so others are elected while there are any.
		k.blind.Store(&seat)
		weight = mysql.WeightLast
	} else {
		if err := sit(ctx, k.store, at.rec, seat); err != nil {
			return err
		}
		k.blind.Store(nil)
	}
	if err := k.server.Weigh(ctx, weight); err != nil {
		return err
	}
	k.weight = weight
	k.log.Info("joining the group", "name", e.Group, "address", e.Address, "copy", e.Clone, "recorded", !at.blind)
	k.group, e.Seeds = e.Group, k.seeds(ctx, at)
	return k.server.Join(ctx, e)
}

// seeds are the addresses at which others may let this member in. They are no names, for the reason that server.Settings has.
func (k *Keeper) seeds(ctx context.Context, at surroundings) []string {
	addresses := at.addresses
	if at.blind {
		addresses = map[string]string{}
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		for name, host := range at.hosts {
			// A member whose name is not found cannot be asked either.
			if found, err := net.DefaultResolver.LookupHost(ctx, host); err == nil {
				addresses[name] = found[0]
			}
		}
	}
	seeds := make([]string, 0, len(addresses))
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		seeds = append(seeds, layout.Inner(addresses[name]))
	}
	return seeds
}

// membersOf are the names of members that have a pod.
func membersOf(list []pods.Pod) []string {
	found := make([]string, 0, len(list))
	for _, p := range list {
		found = append(found, p.Member)
	}
	return found
}

// addressesOf the pods that have one, by the member's name.
func addressesOf(list []pods.Pod) map[string]string {
	addresses := map[string]string{}
	for _, p := range list {
		if p.IP != "" {
			addresses[p.Member] = p.IP
		}
	}
	return addresses
}

// hostsOf the members that have a pod or a seat, by name.
func hostsOf(names []string, view []record.Seat, domain string) map[string]string {
	hosts := map[string]string{}
	for _, name := range names {
		hosts[name] = layout.Host(name, domain)
	}
	for _, s := range view {
		hosts[s.Name] = layout.Host(s.Name, domain)
	}
	return hosts
}

// begin a group with this member alone.
func (k *Keeper) begin(ctx context.Context, group string) error {
	k.log.Info("beginning a group", "name", group)
	k.group, k.weight = group, 0
	ctx, cancel := context.WithTimeout(ctx, enterLimit)
	defer cancel()
	return k.server.Begin(ctx, group)
}

// sit down among the members of the group before joining it: the record must never lack one that has something to say after an outage. A seat
// that is there already is written again, because the leader may be about to remove it.
func sit(ctx context.Context, store *record.Client, rec record.Record, own record.Seat) error {
	if len(rec.View) == 0 {
		return errors.New("the leader has not recorded its group yet")
	}
	now := time.Now().UTC().Truncate(time.Second)
	own.Joining = &now
	view := slices.DeleteFunc(slices.Clone(rec.View), func(s record.Seat) bool { return s.Name == own.Name })
	return store.Sit(ctx, rec, append(view, own))
}
