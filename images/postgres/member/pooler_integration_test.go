// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/function/database/engine/postgres"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/command"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
	"github.com/capstan-dev/capstan/test/container"
)

const (
	consumer         = "api"
	consumerPassword = "a consumer's password, with a ' in it"
)

// A pooled cluster has poolers before it, and what stands for the Service that leads to the leader.
type pooled struct {
	*cluster

	poolers map[string]*container.Running // by address
}

// serviceAt an address passes connections on to the member that is chosen when they begin, as a Service does. None is chosen by "".
func (c *cluster) serviceAt(address string, choose func() string) {
	c.t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				member := choose()
				if member == "" {
					if tcp, ok := conn.(*net.TCPConn); ok {
						_ = tcp.SetLinger(0) // refused
					}
					return
				}
				behind, err := net.Dial("tcp", c.identify(member).Address(pgmember.PortPostgres))
				if err != nil {
					return
				}
				defer func() { _ = behind.Close() }()
				go func() {
					_, _ = io.Copy(behind, conn)
					_ = behind.Close()
				}()
				_, _ = io.Copy(conn, behind)
			}()
		}
	}()
}

// newPooled Database of three members, which run, and two poolers.
func newPooled(t *testing.T, mode postgres.PoolMode) *pooled {
	t.Helper()
	p := newToPool(t)
	name, _ := p.services()
	for i := range 2 {
		p.pooler(i, postgres.Pooler{Host: name, Databases: []string{"shop"}, Mode: mode, PoolSize: 4, MaxClients: 100})
	}
	p.poolersReady()
	return p
}

// services of the leader and of the standbys, by name.
func (c *cluster) services() (leader, standbys string) {
	return fmt.Sprintf("%s-rw.%s.svc", database, c.ns), fmt.Sprintf("%s-ro.%s.svc", database, c.ns)
}

func (p *pooled) poolersReady() {
	p.t.Helper()
	for a := range p.poolers {
		p.eventually("pooler "+a+" is ready", 30*time.Second, func() bool { return p.probeAt(a, "/readyz") == nil })
	}
}

// newToPool is a Database of three members, which run and let poolers in.
func newToPool(t *testing.T) *pooled {
	t.Helper()
	c := newClusterWith(t, []string{"a", "b", "c"}, func(c *cluster) { c.server.Pooled = true })
	c.file("config/member.json", []byte(`{"databases": ["shop"], "extensions": [], "pooled": true}`))
	begin(t, c, "a", "b", "c")
	p := &pooled{cluster: c, poolers: map[string]*container.Running{}}
	p.consumer()
	c.serviceAt(net.JoinHostPort(p.at(40), "5432"), c.leader)
	cert, key, err := c.ca.Issue(pgmember.PoolerCommonName, []string{"localhost", fmt.Sprintf("%s-pooler.%s.svc", database, c.ns)})
	if err != nil {
		t.Fatal(err)
	}
	c.file("pooler/tls.crt", cert)
	c.file("pooler/tls.key", key)
	c.file("pooler/ca.crt", c.ca.PEM)
	return p
}

// at is an address of the Database.
func (p *pooled) at(n int) string { return fmt.Sprintf("127.%d.%d.%d", p.net, p.sub, n) }

// consumer as the platform makes it.
func (p *pooled) consumer() {
	p.t.Helper()
	conn, err := p.connect(p.t.Context(), p.leader(), "shop")
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	verifier, err := scram(consumerPassword)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, s := range []string{
		"create role " + consumer + " login password '" + verifier + "'", "comment on role " + consumer + " is 'capstan.dev: login'",
		"grant select, insert on public.ledger to " + consumer,
		"create role stranger login password '" + verifier + "'",
		"create role closed nologin password '" + verifier + "'", "comment on role closed is 'capstan.dev: login'",
	} {
		if _, err := conn.Exec(p.t.Context(), s); err != nil {
			p.t.Fatalf("%s: %v", s, err)
		}
	}
}

// pooler as its Deployment makes it.
func (p *pooled) pooler(i int, config postgres.Pooler) {
	p.t.Helper()
	address := p.at(51 + i)
	leader, standbys := p.services()
	host := fmt.Sprintf("%s-pooler-%d", database, i)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: host, Labels: map[string]string{members.LabelPooler: database}},
		Spec:       corev1.PodSpec{ServiceAccountName: database + "-members", Containers: []corev1.Container{{Name: "pooler", Image: "postgres"}}},
	}
	pod, err := p.client.CoreV1().Pods(p.ns).Create(p.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}}
	if _, err := p.client.CoreV1().Pods(p.ns).UpdateStatus(p.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	// All have the network of the machine.
	folder := "config-" + host
	p.file(folder+"/pgbouncer.ini", []byte(strings.Replace(config.Config(), "listen_addr = *", "listen_addr = "+address, 1)))
	p.file(folder+"/"+pgmember.FilePoolerAccess, []byte(postgres.PoolerAccess))
	scratch := filepath.Join(p.base, "scratch-"+host)
	if err := os.Mkdir(scratch, 0o755); err != nil {
		p.t.Fatal(err)
	}
	mount := func(name string) string { return filepath.Join(p.base, name) }
	box := container.Spec{
		Run: "postgresql", Root: p.root, Scratch: scratch, Program: p.program, Host: host, Args: []string{"pooler"},
		Hosts:  fmt.Sprintf("127.0.0.1 localhost\n%s %s\n%s %s\n", p.at(40), leader, p.at(41), standbys),
		Mounts: map[string]string{"/etc/capstan/config": mount(folder), pgmember.FolderMembers: mount("pooler"), pgmember.FolderServer: mount("pooler")},
	}
	env := []string{
		"CAPSTAN_LEADER=" + leader, "CAPSTAN_HEALTH_ADDRESS=" + address + ":8009", "CAPSTAN_PAUSE_ADDRESS=" + address + ":8010",
		"CAPSTAN_METRICS_ADDRESS=" + address + ":9127",
	}
	if config.Readers {
		env = append(env, "CAPSTAN_STANDBYS="+standbys)
	}
	r := box.Start(p.t, filepath.Join(p.logs, "log-"+host), env)
	p.poolers[address] = r
	p.t.Cleanup(func() {
		r.Kill()
		raw, _ := os.ReadFile(filepath.Join(p.logs, "log-"+host))
		if p.t.Failed() {
			p.t.Logf("log of %s:\n%s", host, raw[max(0, len(raw)-6000):])
		}
	})
}

// probeAt the address of a pooler.
func (p *pooled) probeAt(address, path string) error {
	_, err := p.getAt("http://" + net.JoinHostPort(address, "8009") + path)
	return err
}

func (*pooled) getAt(url string) (string, error) {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", resp.Status, raw)
	}
	return string(raw), nil
}

// through a pooler, as a client.
func (p *pooled) through(ctx context.Context, address, db, user, password string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s@%s/%s?sslmode=require&password=%s", user, net.JoinHostPort(address, "5432"), db, url.QueryEscape(password)))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.ca.PEM)
	cfg.TLSConfig = &tls.Config{RootCAs: pool, ServerName: fmt.Sprintf("%s-pooler.%s.svc", database, p.ns), MinVersion: tls.VersionTLS12}
	cfg.Fallbacks = nil
	return pgx.ConnectConfig(ctx, cfg)
}

// Clients insert rows through the poolers, each over one connection that it keeps for as long as it works.
type clients struct {
	ledger

	p *pooled
}

// many clients at each pooler.
func (p *pooled) many(n int) *clients {
	ctx, stop := context.WithCancel(p.t.Context())
	w := &clients{ledger: ledger{c: p.cluster, stop: stop}, p: p}
	for a := range p.poolers {
		for range n {
			w.all.Go(func() { w.run(ctx, a) })
		}
	}
	return w
}

func (w *clients) run(ctx context.Context, address string) {
	var conn *pgx.Conn
	last := time.Now()
	for ctx.Err() == nil {
		err := func() error {
			one, cancel := context.WithTimeout(ctx, 90*time.Second)
			defer cancel()
			id := 1_000_000 + w.number()
			if conn == nil {
				c, err := w.p.through(one, address, "shop", consumer, consumerPassword)
				if err != nil {
					return fmt.Errorf("connect: %w", err)
				}
				conn = c
				w.connected()
			}
			if _, err := conn.Exec(one, "insert into public.ledger (id) values ($1)", id); err != nil {
				return fmt.Errorf("insert: %w", err)
			}
			last = w.ack(id, last)
			return nil
		}()
		if err != nil && ctx.Err() == nil {
			_ = conn.Close(context.Background())
			conn = nil
			w.fail(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if conn != nil {
		_ = conn.Close(context.Background())
	}
}

func TestPooler(t *testing.T) {
	p := newPooled(t, postgres.PoolTransactions)
	t.Run("Logins", func(t *testing.T) { p.logins(t) })
	t.Run("Strangers", func(t *testing.T) { p.strangers(t) })
	w := p.many(6)
	w.goesOn(20 * time.Second)
	w.reset()
	settled := func(t *testing.T) {
		t.Helper()
		p.t = t
		p.eventually("all members are ready", 3*time.Minute, func() bool { return p.ready("a", "b", "c") })
		p.eventually("commits wait for another member", time.Minute, p.synchronous)
		w.goesOn(20 * time.Second)
		w.reset()
	}
	for _, step := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"Handover", func(t *testing.T) {
			t.Helper()
			before := p.leader()
			out, err := p.running(before).Enter("/usr/local/bin/capstan-member", "handover")
			t.Logf("%s", out)
			if err != nil || p.leader() == before {
				t.Errorf("%s leads, and %s did before: %v", p.leader(), before, err)
			}
		}},
		{"PodDeleted", func(t *testing.T) {
			t.Helper()
			before := p.leader()
			p.running(before).Terminate(true)
			p.eventually("another leads", 20*time.Second, func() bool { return p.leader() != "" && p.leader() != before })
			p.start(before)
		}},
		{"RestartInPlace", func(t *testing.T) {
			t.Helper()
			before := p.leader()
			if out, err := p.running(before).Enter(p.restart(before)...); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if p.leader() != before {
				t.Errorf("%s leads, and %s did before", p.leader(), before)
			}
		}},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			settled(t)
			step.do(t)
			w.goesOn(30 * time.Second)
			errs := w.failures()
			gap, _ := w.reset()
			t.Logf("the longest wait of a client: %s; errors: %v", gap, errs)
			if len(errs) > 0 {
				t.Errorf("clients had errors, want none: %v", errs)
			}
		}) {
			t.Log(p.metrics())
		}
	}
	t.Run("LeaderKilled", func(t *testing.T) {
		settled(t)
		before := p.leader()
		p.running(before).Kill()
		p.eventually("another leads", time.Minute, func() bool { return p.leader() != before && p.leader() != "" })
		w.goesOn(30 * time.Second)
		for e, k := range w.failures() {
			t.Logf("%d: %s", k, e)
		}
		gap, n := w.reset()
		t.Logf("the longest wait of a client: %s; 12 clients had %d errors", gap, n)
		// What was under way is broken off. Who tries again may be refused once before clients are let wait.
		if n > 24 {
			t.Errorf("%d errors, want two for each client at most", n)
		}
		p.start(before)
	})
	t.Run("Reload", func(t *testing.T) { settled(t); p.reloads(t, w) })
	p.t = t
	m := p.metrics()
	for _, want := range []string{`capstan_pooler_waits_total{cause="Handover"}`, `capstan_pooler_clients{datname="shop",login="api",state="active"}`, "capstan_pooler_waiting 0"} {
		if !strings.Contains(m, want) {
			t.Errorf("metrics have no %s:\n%s", want, m)
		}
	}
	t.Run("Stop", func(t *testing.T) {
		settled(t)
		w.stop()
		w.all.Wait()
		p.stops(t)
	})
	t.Run("Removed", func(t *testing.T) { p.t = t; p.removed() })
	p.t = t
	w.check(t)
	p.oneLeader()
}

// metrics of the poolers.
func (p *pooled) metrics() string {
	var all []string
	for a := range p.poolers {
		text, err := p.getAt("http://" + net.JoinHostPort(a, "9127") + "/metrics")
		if err != nil {
			text = err.Error()
		}
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}

// restart is how patronictl in a member starts its PostgreSQL again.
func (p *pooled) restart(letter string) []string {
	m := p.identify(letter)
	return append(append([]string{"env"}, m.Environment()...), "patronictl", "-c", layout.Configuration, "restart", "--force", scope, m.Pod)
}

// logins: those of consumers, and no others, whatever their password.
func (p *pooled) logins(t *testing.T) {
	t.Helper()
	for a := range p.poolers {
		for name, tc := range map[string]struct {
			db, user, password string
			want               bool
		}{
			"Consumer":      {"shop", consumer, consumerPassword, true},
			"WrongPassword": {"shop", consumer, "wrong", false},
			"Platform":      {"shop", "capstan", password, false},
			"Superuser":     {"shop", "postgres", "", false},
			"Pooler":        {"postgres", "pooler", "", false},
			"PoolerInShop":  {"shop", "pooler", "", false},
			"Exporter":      {"shop", "exporter", "", false},
			"Replication":   {"shop", "standby", "", false},
			"NotOurs":       {"shop", "stranger", consumerPassword, false},
			"Closed":        {"shop", "closed", consumerPassword, false},
			"Unknown":       {"shop", "nobody", "x", false},
			"OtherDatabase": {"postgres", consumer, consumerPassword, false},
			"Console":       {"pgbouncer", consumer, consumerPassword, false},
			"ConsoleAdmin":  {"pgbouncer", "pgbouncer", "", false},
		} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				conn, err := p.through(ctx, a, tc.db, tc.user, tc.password)
				if err == nil {
					var n int
					err = conn.QueryRow(ctx, "select 1").Scan(&n)
					_ = conn.Close(ctx)
				}
				if (err == nil) != tc.want {
					t.Errorf("log in as %q: %v, want success: %t", tc.user, err, tc.want)
				}
				if errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("log in as %q: no answer within 10 s", tc.user)
				}
			})
		}
		// Without TLS nobody gets as far.
		cfg, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s@%s/shop?sslmode=disable&password=x", consumer, net.JoinHostPort(a, "5432")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pgx.ConnectConfig(t.Context(), cfg); err == nil || !strings.Contains(strings.ToLower(err.Error()), "ssl") && !strings.Contains(strings.ToLower(err.Error()), "tls") {
			t.Errorf("without TLS: %v, want a refusal that says so", err)
		}
	}
	conn, err := p.connect(t.Context(), p.leader(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	// Nobody else looks anything up.
	var n int
	if err := conn.QueryRow(t.Context(), "select count(*) from capstan.lookup('"+consumer+"')").Scan(&n); err == nil {
		t.Error("the platform's login can look verifiers up")
	}
}

// strangers ask for what only members may: poolers to wait, and Patroni to change something.
func (p *pooled) strangers(t *testing.T) {
	t.Helper()
	read := func(folder, name string) []byte {
		raw, err := os.ReadFile(filepath.Join(p.base, folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.ca.PEM)
	with := func(folder string) *tls.Config {
		c := &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
		if folder != "" {
			pair, err := tls.X509KeyPair(read(folder, "tls.crt"), read(folder, "tls.key"))
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		return c
	}
	ask := func(method, url, folder, from, body string) (int, string) {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 2 * time.Second}
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: with(folder), DisableKeepAlives: true}}
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		raw, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(raw)
	}
	for a := range p.poolers {
		url := "https://" + net.JoinHostPort(a, "8010") + "/pause"
		if code, text := ask(http.MethodPost, url, "", "127.0.0.1", ""); code != 0 {
			t.Errorf("without a certificate: %d %s, want no answer", code, text)
		}
		if code, text := ask(http.MethodPost, url, "pooler", a, ""); code != http.StatusForbidden {
			t.Errorf("with the certificate of a pooler: %d %s, want %d", code, text, http.StatusForbidden)
		}
		// The certificate of a pooler is of the authority of members.
		for letter := range maps.Keys(p.members) {
			url := "https://" + p.identify(letter).Address(pgmember.PortPatroni)
			for path, body := range map[string]string{"/config": `{"capstan_wake": null}`, "/restart": "{}", "/switchover": fmt.Sprintf(`{"leader": %q}`, p.identify(p.leader()).Pod)} {
				method := map[bool]string{true: http.MethodPatch, false: http.MethodPost}[path == "/config"]
				if code, text := ask(method, url+path, "pooler", a, body); code != http.StatusForbidden {
					t.Errorf("a pooler at %s%s: %d %s, want %d", letter, path, code, text, http.StatusForbidden)
				}
			}
		}
	}
}

// removed poolers leave nothing in the server.
func (p *pooled) removed() {
	p.t.Helper()
	p.file("config/member.json", []byte(`{"databases": ["shop"], "extensions": []}`))
	p.eventually("the role of poolers is gone", time.Minute, func() bool {
		conn, err := p.connect(p.t.Context(), p.leader(), "postgres")
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(context.Background()) }()
		var n int
		err = conn.QueryRow(p.t.Context(), `select (select count(*) from pg_roles where rolname = 'pooler')
			+ (select count(*) from pg_namespace where nspname = 'capstan') + (select count(*) from pg_proc where proname = 'lookup')`).Scan(&n)
		return err == nil && n == 0
	})
}

// stops with a client that stays: it has half a minute to leave by itself, and what it does then it may end.
func (p *pooled) stops(t *testing.T) {
	t.Helper()
	var all sync.WaitGroup
	for a, r := range p.poolers {
		all.Go(func() {
			conn, err := p.through(t.Context(), a, "shop", consumer, consumerPassword)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close(context.Background()) }()
			begun := time.Now()
			_ = syscall.Kill(r.PID(), syscall.SIGTERM)
			time.Sleep(command.LeaveLimit - time.Second)
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Errorf("a client that stays cannot begin a transaction: %v", err)
				return
			}
			if p.probeAt(a, "/readyz") == nil {
				t.Error("a pooler that stops is ready")
			}
			time.Sleep(4 * time.Second)
			var n int
			if err := errors.Join(tx.QueryRow(t.Context(), "select 1").Scan(&n), tx.Commit(t.Context())); err != nil {
				t.Errorf("a client that stays cannot end its transaction: %v", err)
			}
			select {
			case <-r.Done():
				t.Logf("stopped after %s", time.Since(begun).Round(time.Millisecond))
			case <-time.After(command.EndLimit):
				t.Errorf("a pooler did not stop within %s", time.Since(begun))
			}
		})
	}
	all.Wait()
}

// reloads sizes and certificates without an error.
func (p *pooled) reloads(t *testing.T, w *clients) {
	t.Helper()
	cert, key, err := p.ca.Issue(pgmember.PoolerCommonName, []string{"localhost", fmt.Sprintf("%s-pooler.%s.svc", database, p.ns)})
	if err != nil {
		t.Fatal(err)
	}
	p.file("pooler/tls.key", key)
	p.file("pooler/tls.crt", cert)
	want, err := x509.ParseCertificate(decodePEM(cert))
	if err != nil {
		t.Fatal(err)
	}
	for a := range p.poolers {
		i := map[bool]int{true: 0, false: 1}[strings.HasSuffix(a, ".51")]
		name := fmt.Sprintf("config-%s-pooler-%d/pgbouncer.ini", database, i)
		raw, err := os.ReadFile(filepath.Join(p.base, name))
		if err != nil {
			t.Fatal(err)
		}
		p.file(name, bytes.Replace(raw, []byte("default_pool_size = 4"), []byte("default_pool_size = 1"), 1))
	}
	for a := range p.poolers {
		took := p.eventually("the new certificate is shown", 30*time.Second, func() bool {
			conn, err := p.through(t.Context(), a, "shop", consumer, consumerPassword)
			if err != nil {
				t.Error(err)
				return true
			}
			defer func() { _ = conn.Close(context.Background()) }()
			tc, ok := conn.PgConn().Conn().(*tls.Conn)
			return ok && tc.ConnectionState().PeerCertificates[0].Equal(want)
		})
		t.Logf("shown after %s", took)
	}
	p.eventually("there is one connection to the server", 30*time.Second, func() bool {
		return strings.Contains(p.metrics(), `capstan_pooler_connections{datname="shop",login="api",state="active"} 1`)
	})
	w.goesOn(10 * time.Second)
	if errs := w.failures(); len(errs) > 0 {
		t.Errorf("clients had errors, want none: %v", errs)
	}
}

func decodePEM(raw []byte) []byte {
	block, _ := pem.Decode(raw)
	return block.Bytes
}
