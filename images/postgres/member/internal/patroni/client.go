// SPDX-License-Identifier: Apache-2.0

// Package patroni talks to Patroni's REST API.
package patroni

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/web"
)

// A Client of the Patroni of a member.
type Client struct {
	http *http.Client
}

// At the address of a pod, a Client of the Patroni of that member. Patroni identifies itself by the members' certificate. The files
// are read again for each connection, for certificates change. Patroni closes its connections after each answer.
func At(ip string) *Client {
	address := net.JoinHostPort(ip, strconv.Itoa(pgmember.PortPatroni))
	dialer := &net.Dialer{Timeout: 3 * time.Second}
	return &Client{http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			cfg, err := certificate.Config(pgmember.FolderTLS)
			if err != nil {
				return nil, err
			}
			// The address is the pod's own, and the certificate of members is for localhost, too.
			cfg.ServerName = "localhost"
			return (&tls.Dialer{NetDialer: dialer, Config: cfg}).DialContext(ctx, network, address)
		},
	}}}
}

// State of the member as its Patroni sees it.
type State struct {
	// `Leads` reports that it has the leader's lock and PostgreSQL takes writes.
	Leads bool `json:"-"`

	// Role is primary or replica, State is running when PostgreSQL runs.
	Role  string `json:"role"`
	State string `json:"state"`
	// Version of the server as a number, 170006.
	Version int `json:"server_version"`
	// Replication of a replica: streaming while it hears from its leader, another word or none otherwise.
	Replication string `json:"replication_state"`
	// Paused reports that no member is promoted, and that PostgreSQL continues without Patroni.
	Paused bool `json:"pause"`
}

// Follows reports whether PostgreSQL runs as a replica.
func (s State) Follows() bool { return s.Role == "replica" && s.State == "running" }

// Demoted reports whether PostgreSQL runs as a standby, or was stopped for it. It takes no writes then, and those that were under way have ended.
func (s State) Demoted() bool { return s.Follows() || s.Role == "demoted" }

// LeadsStandbys reports whether PostgreSQL runs as the leader of a standby cluster: other members follow it, and it takes no writes.
func (s State) LeadsStandbys() bool { return s.Role == "standby_leader" && s.State == "running" }

// State of this member.
func (c *Client) State(ctx context.Context) (State, error) {
	code, body, err := c.do(ctx, http.MethodGet, "/primary", nil)
	if err != nil {
		return State{}, err
	}
	var s State
	if err := json.Unmarshal(body, &s); err != nil {
		return State{}, fmt.Errorf("cannot understand what Patroni says of the member: %w", err)
	}
	s.Leads = code == http.StatusOK
	return s, nil
}

// Received is the position in the log up to which a standby has received it.
func (c *Client) Received(ctx context.Context) (int64, error) {
	_, body, err := c.do(ctx, http.MethodGet, "/patroni", nil)
	if err != nil {
		return 0, err
	}
	var s struct {
		Log *struct {
			Received int64 `json:"received_location"`
			Replayed int64 `json:"replayed_location"`
		} `json:"xlog"`
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return 0, fmt.Errorf("cannot understand what Patroni says of the log: %w", err)
	}
	if s.Log == nil {
		return 0, errors.New("cannot find out what a standby has received: its server does not answer")
	}
	return max(s.Log.Received, s.Log.Replayed), nil
}

// HasLock reports whether this member has the leader's lock, whether or not its PostgreSQL runs.
func (c *Client) HasLock(ctx context.Context) (bool, error) { return c.is(ctx, "/leader") }

// Ready reports whether clients may be sent to this member.
func (c *Client) Ready(ctx context.Context) (bool, error) { return c.is(ctx, "/readiness") }

// Alive reports whether Patroni's loop runs. The error says that Patroni does not answer at all.
func (c *Client) Alive(ctx context.Context) (bool, error) { return c.is(ctx, "/liveness") }

// is what a path of Patroni's API asks.
func (c *Client) is(ctx context.Context, path string) (bool, error) {
	code, _, err := c.do(ctx, http.MethodGet, path, nil)
	return code == http.StatusOK, err
}

// Silent reports whether an error means that nothing answered. A server with a certificate that is not trusted did answer; what has
// no route is silent, too.
func Silent(err error) bool {
	// What the client of HTTP makes of an error hides whether it was a time-out, and the time of a connection may run out a
	// moment before the context's.
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

// Wake Patroni's loop, which otherwise runs every few seconds only: a change of nothing wakes it, and is not written anywhere.
//
// Only the leader may be woken. For this request, as for GET /cluster, Patroni 4.1 reads the leader's lock again in
// another thread. If its loop is about to take a lock that it saw free, and another member has it by now, the loop then takes it
// from that one, and two are promoted.
func (c *Client) Wake(ctx context.Context) error {
	code, body, err := c.do(ctx, http.MethodPatch, "/config", map[string]any{"capstan_wake": nil})
	return expect(code, body, err)
}

// A Peer is a member as Patroni lists it.
type Peer struct {
	// Name of the pod.
	Name string `json:"name"`
	// Role: leader, sync_standby, quorum_standby, replica and others.
	Role string `json:"role"`
	// State: running, streaming, starting and others.
	State string `json:"state"`
	// Lag behind the leader in bytes, or the word unknown.
	Lag any `json:"lag"`
	// Tags of its configuration.
	Tags map[string]any `json:"tags"`
}

// Cluster lists all members and reports whether automatic failover is off. Only the leader may be asked, or one of a
// Database in a pause, for the reason that Wake has.
func (c *Client) Cluster(ctx context.Context) (peers []Peer, paused bool, err error) {
	code, body, err := c.do(ctx, http.MethodGet, "/cluster", nil)
	if err := expect(code, body, err); err != nil {
		return nil, false, err
	}
	var all struct {
		Members []Peer `json:"members"`
		Pause   bool   `json:"pause"`
	}
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, false, fmt.Errorf("cannot understand Patroni's list of members: %w", err)
	}
	return all.Members, all.Pause, nil
}

// Switchover from this member to another, or to whichever is fit. It returns when the other one is the leader.
//
// It is better not to name one: with a candidate all others pause for two seconds before they follow it, and until one of them
// does no commit is on two members.
func (c *Client) Switchover(ctx context.Context, leader, candidate string) error {
	request := map[string]any{"leader": leader}
	if candidate != "" {
		request["candidate"] = candidate
	}
	code, body, err := c.do(ctx, http.MethodPost, "/switchover", request)
	return expect(code, body, err)
}

// Reinitialize lets Patroni remove the data of this standby and copy it again from the leader. It returns when that has begun.
//
// Patroni reads the leader's lock for it in another thread, as for Wake. That does no harm here: a standby that has to be
// copied is too far behind to take the lock.
func (c *Client) Reinitialize(ctx context.Context) error {
	code, body, err := c.do(ctx, http.MethodPost, "/reinitialize", map[string]any{"from_leader": true})
	return expect(code, body, err)
}

// do a request. With any status, an answer is no error.
func (c *Client) do(ctx context.Context, method, path string, body any) (int, []byte, error) {
	code, answer, err := web.Send(ctx, c.http, method, "https://localhost"+path, body)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot ask Patroni for %s: %w", path, err)
	}
	return code, answer, nil
}

// expect an answer that says that it is done.
func expect(code int, body []byte, err error) error {
	if err != nil || code == http.StatusOK {
		return err
	}
	if len(body) == 0 {
		return errors.New("Patroni refuses: " + http.StatusText(code))
	}
	return errors.New("Patroni refuses: " + strings.TrimSpace(string(body)))
}

// maxLag is how far a member may be behind to take over at once, in bytes: about a second of writes.
const maxLag = 16 << 20

// Candidate returns the name of the pod that is best fit to lead after another, or nothing when none is. Those that stop are
// never fit. With synchronous replication only a synchronous member has all that was acknowledged; Patroni refuses others.
func Candidate(peers []Peer, leader string, stopping []string) string {
	var fit []Peer
	for _, p := range peers {
		if p.Name == leader || slices.Contains(stopping, p.Name) || p.State != "streaming" || p.Tags["nofailover"] == true || p.lag() > maxLag {
			continue
		}
		fit = append(fit, p)
	}
	synchronous := func(p Peer) bool { return p.Role == "sync_standby" || p.Role == "quorum_standby" }
	if slices.ContainsFunc(fit, synchronous) {
		fit = slices.DeleteFunc(fit, func(p Peer) bool { return !synchronous(p) })
	}
	if len(fit) == 0 {
		return ""
	}
	return slices.MinFunc(fit, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.lag(), b.lag()), cmp.Compare(a.Name, b.Name))
	}).Name
}

// lag in bytes; what is unknown is too far.
func (p Peer) lag() float64 {
	if n, ok := p.Lag.(float64); ok {
		return n
	}
	return maxLag + 1
}
