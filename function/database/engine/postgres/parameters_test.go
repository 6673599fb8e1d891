// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
)

var majors = []int{15, 17, 18}

// TestTable compares the table with what real servers of our image tell of themselves (postgres --describe-config): that the
// parameter is there, whether it needs a restart, and that no value beyond its bounds is let through.
func TestTable(t *testing.T) {
	for _, major := range majors {
		described := describe(t, major)
		for name, p := range parameters {
			if p.extension != "" || p.library != "" {
				continue
			}
			d, there := described[name]
			if there != (major >= p.since) {
				t.Errorf("%s: the server of version %d has it: %t", name, major, there)
				continue
			}
			if !there {
				continue
			}
			if restart := d[0] == "postmaster"; restart != needsRestart(name, major) {
				t.Errorf("%s: version %d needs a restart: %t", name, major, restart)
			}
			if p.kind != integer && p.kind != decimal && p.kind != memory && p.kind != duration {
				continue
			}
			least, most := parsed(t, d[3]), parsed(t, d[4])
			if p.most > most && !(p.most == math.MaxFloat64 && most > 1e300) || p.least < least && !(p.hasOff && p.off == least) || p.hasOff && p.off < least {
				t.Errorf("%s: from %v to %v (off %v), and version %d takes from %v to %v", name, p.least, p.most, p.off, major, least, most)
			}
		}
	}
}

// describe is what a server tells: context, type, default, least and most.
func describe(t *testing.T, major int) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("describe-config-%d.tsv", major)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		all[strings.ToLower(f[0])] = f[1:]
	}
	return all
}

func parsed(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOwn parameters, which Capstan itself sets, are those that servers have.
func TestOwn(t *testing.T) {
	for _, major := range majors {
		described := describe(t, major)
		s := Server{Server: engine.Server{Members: 3, Memory: 1 << 30, Storage: 50 << 30}, Major: major, MaxConnections: 100, Pace: paces[v1alpha1.FailoverBalanced]}
		for name := range s.restarting() {
			if d := described[name]; d == nil || d[0] != "postmaster" {
				t.Errorf("%s is set at the start, and version %d says %v", name, major, d)
			}
		}
		for name := range s.reloading() {
			if d := described[name]; d == nil || d[0] == "postmaster" || d[0] == "internal" {
				t.Errorf("%s is set at run time, and version %d says %v", name, major, d)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason           string
		parameter, value string
		major            int
		extensions       []string
		want             string
	}{
		"Memory":      {"A size with a unit is taken.", "work_mem", "64MB", 17, nil, ""},
		"MemoryPlain": {"A plain number is in the server's own unit.", "work_mem", "65536", 17, nil, ""},
		"TooLittle":   {"Bounds are told in units that people use.", "work_mem", "1kB", 17, nil, "must be from 64kB to 2147483647kB, with kB, MB or GB"},
		"NoSize":      {"What is no size is not.", "work_mem", "lots", 17, nil, "must be from 64kB to 2147483647kB, with kB, MB or GB"},
		"Off":         {"A value that turns it off is beside the bounds.", "log_min_duration_statement", "-1", 17, nil, ""},
		"Duration":    {"Times have units, too.", "statement_timeout", "30s", 17, nil, ""},
		"Members":     {"What members need is not for sale.", "max_wal_senders", "2", 17, nil, "must be a number from 20 to 1000"},
		"Unlisted":    {"Durability is Capstan's.", "fsync", "off", 17, nil, "is not a parameter that a Database can set: remove it; docs/database.md lists all that can be set"},
		"Version":     {"Versions differ.", "transaction_timeout", "1min", 15, nil, "does not exist in version 15: remove it"},
		"Enum":        {"Words are those there are.", "wal_level", "minimal", 17, nil, "must be one of replica, logical"},
		"Boolean":     {"Switches are on or off.", "geqo", "maybe", 17, nil, "must be on or off"},
		"Extension":   {"Those of an extension need it.", "pg_stat_statements.max", "5000", 17, nil, `needs the extension "pg_stat_statements": add "pg_stat_statements" to spec.extensions`},
		"Extended":    {"With it they are taken.", "pg_stat_statements.max", "5000", 17, []string{"pg_stat_statements"}, ""},
		"Audit":       {"Classes are listed, and taken away with a minus.", "pgaudit.log", "all, -misc,-read", 17, []string{"pgaudit"}, ""},
		"AuditClass":  {"Classes are those there are.", "pgaudit.log", "ddl, dml", 17, []string{"pgaudit"}, "must be a list of none, all, read, write, function, role, ddl, misc, misc_set; a - before one takes it away"},
		"AuditRole":   {"A role is a name.", "pgaudit.role", "auditor'", 17, []string{"pgaudit"}, "must be the name of a role: lower case letters, digits and _"},
		"AuditAlone":  {"Without the extension nothing would happen.", "pgaudit.log", "ddl", 17, nil, `needs the extension "pgaudit": add "pgaudit" to spec.extensions`},
		"Cron":        {"Its jobs follow a zone.", "cron.timezone", "Europe/Zurich", 17, []string{"pg_cron"}, ""},
		"CronHost":    {"Where it connects is Capstan's.", "cron.host", "example.org", 17, []string{"pg_cron"}, "is not a parameter that a Database can set: remove it; docs/database.md lists all that can be set"},
		"Explain":     {"It is no extension.", "auto_explain.log_min_duration", "250ms", 17, nil, ""},
		"Fraction":    {"A fraction is no whole number.", "max_connections", "100.5", 17, nil, "must be a number from 20 to 10000"},
		"Injection":   {"A line break is no part of any value.", "timezone", "UTC\nfsync = off", 17, nil, "must be the name of a time zone, for instance Europe/Zurich"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Check(tc.parameter, tc.value, tc.major, tc.extensions)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSizes(t *testing.T) {
	for name, tc := range map[string]struct {
		server Server
		want   map[string]string
	}{
		"Small": {
			Server{Server: engine.Server{Memory: 256 << 20, Storage: 1 << 30}, Major: 17, MaxConnections: 100},
			map[string]string{
				"shared_buffers": "64MB", "effective_cache_size": "192MB", "work_mem": "1024kB", "maintenance_work_mem": "16MB",
				"max_wal_size": "128MB", "max_slot_wal_keep_size": "256MB",
			},
		},
		"Large": {
			Server{Server: engine.Server{Memory: 64 << 30, Storage: 1 << 40}, Major: 17, MaxConnections: 200},
			map[string]string{
				"shared_buffers": "16384MB", "effective_cache_size": "49152MB", "work_mem": "65536kB", "maintenance_work_mem": "2048MB",
				"max_wal_size": "8192MB", "max_slot_wal_keep_size": "209715MB",
			},
		},
		"Chosen": {
			Server{Server: engine.Server{Memory: 1 << 30, Storage: 50 << 30, Config: map[string]string{"shared_buffers": "300MB", "work_mem": "9MB"}}, Major: 17, MaxConnections: 100},
			map[string]string{"shared_buffers": "300MB", "work_mem": "9MB"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ps := tc.server.parameters()
			for k, want := range tc.want {
				if ps[k] != want {
					t.Errorf("%s: want %s, got %s", k, want, ps[k])
				}
			}
		})
	}
}

// TestDynamic holds the configuration to the form that Patroni writes, so that it finds nothing to correct: Python's
// json.dumps(…, separators=(',', ':')).
func TestDynamic(t *testing.T) {
	s := Server{Server: engine.Server{Members: 3, Memory: 1 << 30, Storage: 50 << 30, Synchronous: true}, Major: 17, MaxConnections: 100, Pace: paces[v1alpha1.FailoverFast]}
	s.Config = map[string]string{"timezone": "<é\U0001F600\u007f&>"}
	got, err := s.Dynamic()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got, `"timezone":"<\u00e9\ud83d\ude00\u007f&>"`) || strings.ContainsAny(got, "\n") {
		t.Errorf("not as Python writes it: %s", got)
	}
	for _, part := range []string{`"synchronous_mode":"quorum"`, `"synchronous_node_count":1`, `"ttl":20`} {
		if !strings.Contains(got, part) {
			t.Errorf("no %s: %s", part, got)
		}
	}
	s.Members = 1
	if got, _ = s.Dynamic(); !strings.Contains(got, `"synchronous_mode":false`) {
		t.Errorf("a single member waits for another: %s", got)
	}
}

func TestPaces(t *testing.T) {
	for _, p := range paces {
		if p.LoopWait+2*p.RetryTimeout > p.TTL || p.TTL < 20 {
			t.Errorf("Patroni corrects %+v", p)
		}
	}
}

func TestAccess(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		pooled bool
		closed string
	}{
		"Plain":  {"The superuser comes by the socket only, and clients after that.", false, "postgres,standby,rewind,exporter"},
		"Pooled": {"What poolers look passwords up with has no password.", true, "postgres,standby,rewind,exporter,pooler"},
	} {
		t.Run(name, func(t *testing.T) {
			lines := Server{Server: engine.Server{Pooled: tc.pooled}}.access()
			pooler := slices.Index(lines, "hostssl postgres pooler all cert map=members")
			i := slices.Index(lines, "host all "+tc.closed+" all reject")
			j := slices.Index(lines, "hostssl all "+pgmember.RoleAccess+" all scram-sha-256")
			last := lines[len(lines)-1]
			if i < 0 || j < i || pooler > i || pooler >= 0 != tc.pooled || !strings.HasPrefix(last, "host all") || !strings.HasSuffix(last, "reject") {
				t.Errorf("%s: lines of pg_hba are not in order: %q", tc.reason, lines)
			}
		})
	}
}

// TestPooled holds that a Database without poolers has the configuration it had.
func TestPooled(t *testing.T) {
	for name, pooled := range map[string]bool{"Without": false, "With": true} {
		t.Run(name, func(t *testing.T) {
			s := Server{Server: engine.Server{Members: 3, Memory: 1 << 30, Storage: 50 << 30, Pooled: pooled}, Major: 17, MaxConnections: 100, Pace: paces[v1alpha1.FailoverFast]}
			file, err := s.Patroni()
			if err != nil {
				t.Fatal(err)
			}
			dynamic, err := s.Dynamic()
			if err != nil {
				t.Fatal(err)
			}
			if want := "allowlist_include_members: true"; strings.Contains(file, want) != pooled {
				t.Errorf("the file of Patroni has %q: %t, want %t", want, !pooled, pooled)
			}
			if strings.Contains(dynamic+file, "pooler") != pooled {
				t.Errorf("the configuration speaks of poolers: %t, want %t", !pooled, pooled)
			}
		})
	}
}

func TestPooler(t *testing.T) {
	p := Pooler{Host: "orders-rw.shop.svc", Databases: []string{"orders", "stock"}, Mode: PoolTransactions, PoolSize: 20, MaxClients: 1000}
	for name, tc := range map[string]struct {
		reason string
		change func(*Pooler)
		want   []string
	}{
		"Plain": {"Clients come with TLS and a password, and the server is verified.", func(*Pooler) {}, []string{
			"orders = host=orders-rw.shop.svc port=5432", "stock = host=orders-rw.shop.svc port=5432",
			"client_tls_sslmode = require", "server_tls_sslmode = verify-full", "server_tls_ca_file = /run/capstan/tls/members-ca.crt",
			"auth_type = hba", "auth_hba_file = /etc/capstan/config/pgbouncer_hba.conf", "pool_mode = transaction", "default_pool_size = 20", "max_client_conn = 1000",
		}},
		"Sessions":  {"The mode is that of the spec.", func(p *Pooler) { p.Mode = v1alpha1.PoolSession }, []string{"pool_mode = session"}},
		"Writers":   {"Connections to a leader live for an hour.", func(*Pooler) {}, []string{"server_lifetime = 3600"}},
		"Readers":   {"One to a standby that was promoted ends soon.", func(p *Pooler) { p.Readers = true }, []string{"server_lifetime = 300"}},
		"Authority": {"An issuer of the platform's signs the server.", func(p *Pooler) { p.ServerAuthority = true }, []string{"server_tls_ca_file = /run/capstan/tls/server-ca.crt"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := p
			tc.change(&p)
			lines := strings.Split(p.Config(), "\n")
			for _, want := range tc.want {
				if !slices.Contains(lines, want) {
					t.Errorf("%s: no line %q in:\n%s", tc.reason, want, p.Config())
				}
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("work_mem", "64MB")
	f.Add("timezone", "Europe/Zurich")
	f.Add("log_statement_sample_rate", "0.5")
	f.Fuzz(func(t *testing.T, name, value string) {
		if Check(name, value, 17, nil) == "" && strings.ContainsAny(value, "\n\r'\\") {
			t.Errorf("%s: %q could be more than a value", name, value)
		}
	})
}
