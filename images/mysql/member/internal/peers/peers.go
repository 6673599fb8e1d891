// SPDX-License-Identifier: Apache-2.0

// Package peers lets the programs of members ask each other what they have, and whether they are in a group with a majority.
package peers

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/member/web"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/decision"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

// limit of one answer. The proof of a majority is part of it.
const limit = 3 * time.Second

// path that answers are at.
const path = "/member"

// An answer of a member.
type answer struct {
	// Scope of the member: its name alone could be another generation's.
	Scope  string         `json:"scope"`
	State  decision.State `json:"state"`
	Proven bool           `json:"proven,omitempty"`
	Server string         `json:"server,omitempty"`
	Has    string         `json:"has,omitempty"`
	Group  []string       `json:"group,omitempty"`
}

// Serve members of the scope with what this one says of itself, until the context ends.
func Serve(ctx context.Context, address, scope string, own func(context.Context) decision.Member) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		if certificate.CallerOf(r) != mysqlmember.MemberCommonName {
			http.Error(w, "only members may ask", http.StatusForbidden)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		m := own(ctx)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer{scope, m.State, m.Proven, m.Server, m.Has.String(), m.Group})
	})
	l, err := certificate.Listen(address, identity)
	if err != nil {
		return err
	}
	return web.Serve(ctx, l, &http.Server{Handler: mux, ReadHeaderTimeout: limit})
}

// identity of this member, with its certificate as it is now.
func identity() (*tls.Config, error) { return certificate.Config(mysqlmember.FolderTLS) }

// Ask members of a scope at their hosts, by name. Those that do not answer in time are not in the result.
func Ask(ctx context.Context, scope string, hosts map[string]string) map[string]decision.Member {
	var mu sync.Mutex
	var all sync.WaitGroup
	out := map[string]decision.Member{}
	for name, host := range hosts {
		all.Go(func() {
			m, err := ask(ctx, scope, host)
			if err != nil {
				return // it is waited for
			}
			mu.Lock()
			defer mu.Unlock()
			out[name] = m
		})
	}
	all.Wait()
	return out
}

func ask(ctx context.Context, scope, host string) (decision.Member, error) {
	cfg, err := identity()
	if err != nil {
		return decision.Member{}, err
	}
	cfg.ServerName = host
	ctx, cancel := context.WithTimeout(ctx, limit+time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: cfg}}
	url := "https://" + net.JoinHostPort(host, strconv.Itoa(mysqlmember.PortPeers)) + path
	code, body, err := web.Send(ctx, client, http.MethodGet, url, nil)
	if err != nil {
		return decision.Member{}, fmt.Errorf("cannot ask %s: %w", host, err)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || code != http.StatusOK || a.Scope != scope {
		return decision.Member{}, fmt.Errorf("cannot understand what %s answers with status %d: %w", host, code, err)
	}
	has, err := gtid.Parse(a.Has)
	if err != nil {
		return decision.Member{}, err
	}
	return decision.Member{State: a.State, Proven: a.Proven, Server: a.Server, Has: has, Group: a.Group}, nil
}
