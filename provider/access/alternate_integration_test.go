// SPDX-License-Identifier: Apache-2.0

//go:build integration

package access

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/postgres"
)

const consumerSecret = "orders-db-api"

// A turnstile writes the Secret of a consumer as its Credential does, at a time of its own.
type turnstile struct {
	*rig

	mu  sync.Mutex
	now time.Time
	n   int
}

func newTurnstile(b *rig) *turnstile {
	s := &turnstile{rig: b, now: time.Now(), n: 1}
	b.c.idle.now, b.c.proofs.now = s.clock, s.clock
	b.databases("orders")
	b.secret(consumerSecret, map[string]string{"username": "api", "password": "password-of-turn-1"})
	b.cr.Spec.ForProvider.Logins = []v1alpha1.Login{{
		Name: "api", Alternate: "api-b", RetireWhenIdle: true, Database: "orders", Access: v1alpha1.AccessReadWrite,
		PasswordSecretRef: v1alpha1.SecretKeyReference{Name: consumerSecret, Key: "password"},
	}}
	return s
}

func (s *turnstile) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *turnstile) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// write the Secret in one request.
func (s *turnstile) write(edit func(*corev1.Secret)) {
	s.t.Helper()
	o := &corev1.Secret{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: "shop", Name: consumerSecret}, o); err != nil {
		s.t.Fatal(err)
	}
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	edit(o)
	if err := s.Update(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *turnstile) token() string { return fmt.Sprintf("%d-3f2a9c1b", s.n+1) }

// stage the next password.
func (s *turnstile) stage() {
	s.write(func(o *corev1.Secret) {
		o.Data["password.next"] = fmt.Appendf(nil, "password-of-turn-%d", s.n+1)
		o.Annotations[credentialsv1alpha1.AnnotationStaged] = s.token()
	})
}

// flip to it.
func (s *turnstile) flip(overlap time.Duration) {
	s.write(func(o *corev1.Secret) {
		o.Data["password.previous"], o.Data["password"] = o.Data["password"], o.Data["password.next"]
		o.Data["username"] = []byte([]string{"api-b", "api"}[(s.n+1)%2])
		delete(o.Data, "password.next")
		delete(o.Annotations, credentialsv1alpha1.AnnotationStaged)
		o.Annotations[credentialsv1alpha1.AnnotationOverlapUntil] = s.clock().Add(overlap).UTC().Format(time.RFC3339)
	})
	s.n++
}

// looks of the provider, one each 30 s.
func (s *turnstile) looks(d time.Duration) {
	s.t.Helper()
	for range int(d / soon) {
		s.pass(soon)
		if _, err := s.reconcile(); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *turnstile) told() v1alpha1.AlternatingLogin {
	s.t.Helper()
	if a := s.cr.Status.AtProvider.Alternating; len(a) == 1 {
		return a[0]
	}
	s.t.Fatalf("want one pair, got %+v", s.cr.Status.AtProvider)
	return v1alpha1.AlternatingLogin{}
}

func (s *turnstile) wants(what string, active, accepted, retiring string) {
	s.t.Helper()
	if got, want := s.told(), (v1alpha1.AlternatingLogin{Name: "api", Active: active, Accepted: accepted, Retiring: retiring}); got != want {
		s.t.Errorf("%s: want %+v, got %+v", what, want, got)
	}
}

// A clerk is a client that connects again and again with what the Secret says, as a pod reads it that has it mounted: some time
// later.
type clerk struct {
	done, failed atomic.Int64

	mu  sync.Mutex
	why []string
}

// clerks work until the test says so.
func (s *turnstile) clerks(n int, late time.Duration, work func(ctx context.Context, user, password string) error) (*clerk, func()) {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := &clerk{}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			var user, password string
			var read time.Time
			for ctx.Err() == nil {
				if time.Since(read) > late {
					o := &corev1.Secret{}
					if err := s.Get(ctx, client.ObjectKey{Namespace: "shop", Name: consumerSecret}, o); err != nil {
						continue
					}
					user, password, read = string(o.Data["username"]), string(o.Data["password"]), time.Now()
				}
				if err := c.work(user, password, work); err != nil {
					c.failed.Add(1)
					c.mu.Lock()
					c.why = append(c.why, user+": "+err.Error())
					c.mu.Unlock()
					continue
				}
				c.done.Add(1)
			}
		})
	}
	return c, func() { stop(); wg.Wait() }
}

func (c *clerk) work(user, password string, work func(ctx context.Context, user, password string) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return work(ctx, user, password)
}

// clerk of a bench.
func (b *bench) clerk() func(ctx context.Context, user, password string) error {
	b.t.Helper()
	base, err := postgres.Config(b.target("", ""))
	if err != nil {
		b.t.Fatal(err)
	}
	delete(base.RuntimeParams, "search_path")
	return func(ctx context.Context, user, password string) error {
		cfg := base.Copy()
		cfg.User, cfg.Password, cfg.Database = user, password, "orders"
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		_, err = conn.Exec(ctx, "INSERT INTO work DEFAULT VALUES")
		return err
	}
}

// TestTurns rotates the login of clients that connect all the time, and of one that stays: none of the former ever fails, and the
// one that stays is ended only when its time is over.
func TestTurns(t *testing.T) {
	versions(t, func(t *testing.T, b *bench) {
		t.Helper()
		s := newTurnstile(b.rig)
		s.settles("the first login")
		s.wants("the first login", "api", "", "")
		_ = b.must("api", "password-of-turn-1", "orders", "CREATE TABLE work (id bigserial PRIMARY KEY, who name DEFAULT session_user)").Close(t.Context())
		clients, stop := s.clerks(3, 200*time.Millisecond, b.clerk())
		stays := b.must("api", "password-of-turn-1", "orders", "SELECT 1")

		// The other login is made, and nobody is told to use it yet.
		s.stage()
		s.settles("the next login is made")
		s.wants("the next login is made", "api", "2-3f2a9c1b", "")
		_ = b.must("api-b", "password-of-turn-2", "orders", "INSERT INTO work DEFAULT VALUES").Close(t.Context())
		s.flip(24 * time.Hour)
		time.Sleep(time.Second) // clients read it
		s.settles("the flip")
		s.wants("the flip", "api-b", "", "api")

		// One session is enough.
		s.looks(15 * time.Minute)
		s.wants("a session stays", "api-b", "", "api")
		if _, err := stays.Exec(t.Context(), "INSERT INTO work DEFAULT VALUES"); err != nil {
			t.Errorf("a session of the login before should go on: %v", err)
		}

		// A rotation that is asked for meanwhile waits for it.
		s.stage()
		s.looks(time.Minute)
		s.wants("the next rotation waits", "api-b", "", "api")
		_ = stays.Close(t.Context())
		s.looks(9 * time.Minute)
		s.wants("it is not idle for long", "api-b", "", "api")
		s.looks(2 * time.Minute)
		s.wants("it was idle, and is made again for the next turn", "api-b", "3-3f2a9c1b", "")
		b.mustNot("the password before", "password authentication failed", "api", "password-of-turn-1", "orders")

		// And the other way round, to the end of the overlap.
		stays = b.must("api-b", "password-of-turn-2", "orders", "SELECT 1")
		s.flip(time.Hour)
		time.Sleep(time.Second)
		s.looks(59 * time.Minute)
		s.wants("before the end of the overlap", "api", "", "api-b")
		s.looks(2 * time.Minute)
		s.wants("after the end of the overlap", "api", "", "")
		b.mustNot("the login before", "not permitted to log in", "api-b", "password-of-turn-2", "orders")
		if _, err := stays.Exec(t.Context(), "SELECT 1"); err == nil {
			t.Error("at the end of the overlap its sessions should be ended")
		}
		stop()
		if clients.failed.Load() > 0 || clients.done.Load() < 20 {
			t.Errorf("%d connections failed, and %d did not: %q", clients.failed.Load(), clients.done.Load(), clients.why[:min(3, len(clients.why))])
		}

		// What either of them made belongs to the owner of the database.
		if got := b.server.SQL("orders", "SELECT DISTINCT tableowner FROM pg_tables WHERE tablename = 'work'"); len(got) != 1 || got[0] != "orders_owner" {
			t.Errorf("want the owner orders_owner, got %v", got)
		}
		t.Logf("%d connections, %d failed", clients.done.Load(), clients.failed.Load())
	})
}

// TestSecretIsGone takes the Secret away: both logins stay until it is back, and what it says then works.
func TestSecretIsGone(t *testing.T) {
	b := newBench(t, "17")
	s := newTurnstile(b.rig)
	s.settles("the first login")
	_ = s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: consumerSecret}})
	if _, err := s.reconcile(); err != nil {
		t.Fatal(err)
	}
	b.must("api", "password-of-turn-1", "orders", "SELECT 1")

	// The Credential makes it again, of the other login, because clients have this one.
	s.secret(consumerSecret, map[string]string{"username": "api-b", "password": "password-of-turn-2"})
	s.write(func(o *corev1.Secret) {
		o.Annotations[credentialsv1alpha1.AnnotationOverlapUntil] = s.clock().Add(time.Hour).UTC().Format(time.RFC3339)
	})
	s.settles("the Secret is back")
	b.must("api-b", "password-of-turn-2", "orders", "SELECT 1")
	b.must("api", "password-of-turn-1", "orders", "SELECT 1")
	s.wants("the Secret is back", "api-b", "", "api")

	// A Secret that names somebody else shuts nobody out.
	s.write(func(o *corev1.Secret) { o.Data["username"] = []byte("postgres") })
	if _, err := s.reconcile(); err != nil {
		t.Fatal(err)
	}
	b.must("api-b", "password-of-turn-2", "orders", "SELECT 1")
	b.must("api", "password-of-turn-1", "orders", "SELECT 1")
}

// TestTurnsCutOff takes turns with connections of the provider that end.
func TestTurnsCutOff(t *testing.T) {
	b := newBench(t, "17")
	s := newTurnstile(b.rig)
	s.settles("the first login")
	s.cutOff(func(user, password string) error {
		conn, err := b.as(user, password, "orders")
		if err != nil {
			return err
		}
		return conn.Close(t.Context())
	})
}
