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
)

// limit of one answer. The proof of a majority is part of it.
const limit = 3 * time.Second

// Paths that answers are at: with a proof of the majority, and without one.
const (
	path    = "/member"
	pathNow = "/member/now"
)

// An answer of a member.
type answer struct {
	decision.Member

	// Scope of the member: its name alone could be another generation's.
	Scope string `json:"scope"`
}

// Serve members of the scope with what this one says of itself, with a proof or without one, until the context ends.
func Serve(ctx context.Context, address, scope string, own func(ctx context.Context, proof bool) decision.Member) error {
	mux := http.NewServeMux()
	for at, proof := range map[string]bool{path: true, pathNow: false} {
		mux.HandleFunc("GET "+at, answers(scope, func(ctx context.Context) decision.Member { return own(ctx, proof) }))
	}
	l, err := certificate.Listen(address, identity)
	if err != nil {
		return err
	}
	return web.Serve(ctx, l, &http.Server{Handler: mux, ReadHeaderTimeout: limit})
}

// answers of a member to others.
func answers(scope string, own func(context.Context) decision.Member) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if certificate.CallerOf(r) != mysqlmember.MemberCommonName {
			http.Error(w, "only members may ask", http.StatusForbidden)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		a := answer{own(ctx), scope}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a)
	}
}

// identity of this member, with its certificate as it is now.
func identity() (*tls.Config, error) { return certificate.Config(mysqlmember.FolderTLS) }

// Ask members of a scope at their hosts, by name, for what they have and for a proof. Those that do not answer in time are not in the result.
func Ask(ctx context.Context, scope string, hosts map[string]string) map[string]decision.Member {
	return all(ctx, scope, path, hosts)
}

// AskNow is the same without a proof, which has to wait for what is under way in the group.
func AskNow(ctx context.Context, scope string, hosts map[string]string) map[string]decision.Member {
	return all(ctx, scope, pathNow, hosts)
}

func all(ctx context.Context, scope, at string, hosts map[string]string) map[string]decision.Member {
	var mu sync.Mutex
	var asked sync.WaitGroup
	out := map[string]decision.Member{}
	for name, host := range hosts {
		asked.Go(func() {
			m, err := ask(ctx, scope, at, host)
			if err != nil {
				return // it is waited for
			}
			mu.Lock()
			defer mu.Unlock()
			out[name] = m
		})
	}
	asked.Wait()
	return out
}

func ask(ctx context.Context, scope, at, host string) (decision.Member, error) {
	cfg, err := identity()
	if err != nil {
		return decision.Member{}, err
	}
	cfg.ServerName = host
	ctx, cancel := context.WithTimeout(ctx, limit+time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: cfg}}
	url := "https://" + net.JoinHostPort(host, strconv.Itoa(mysqlmember.PortPeers)) + at
	code, body, err := web.Send(ctx, client, http.MethodGet, url, nil)
	if err != nil {
		return decision.Member{}, fmt.Errorf("cannot ask %s: %w", host, err)
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || code != http.StatusOK || a.Scope != scope {
		return decision.Member{}, fmt.Errorf("cannot understand what %s answers with status %d: %w", host, code, err)
	}
	return a.Member, nil
}
