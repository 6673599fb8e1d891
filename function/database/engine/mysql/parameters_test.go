// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// member of a size, with parameters of the spec.
func member(memory string, storage int64, connections int32, config map[string]string) engine.Server {
	m := resource.MustParse(memory)
	return engine.Server{Version: "9.7", Members: 3, Memory: m.Value(), SpecMemory: m, Storage: storage * bytesGB, Connections: connections, Config: config}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct{ reason, parameter, value, want string }{
		"Number":      {"In its bounds.", "wait_timeout", "600", ""},
		"NoUnit":      {"A number of seconds has no unit.", "wait_timeout", "10M", "must be a number from 1 to 31536000"},
		"Small":       {"Below the bound of the server.", "max_connections", "5", "must be a number from 20 to 10000"},
		"Size":        {"The server's own units.", "max_allowed_packet", "64M", ""},
		"SizeLower":   {"The server takes them in lower case, too.", "max_allowed_packet", "64m", ""},
		"SizeWords":   {"These are another engine's.", "max_allowed_packet", "64MB", "must be from 1K to 1G, in bytes or with K, M or G"},
		"SizeLarge":   {"Above the bound of the server.", "max_allowed_packet", "2G", "must be from 1K to 1G"},
		"SizeHuge":    {"No number of bytes.", "max_allowed_packet", "9999999999999999999", "must be from 1K to 1G"},
		"SizeWrapped": {"No number of bytes with its unit.", "max_allowed_packet", "9223372036854775807K", "must be from 1K to 1G"},
		"Boolean":     {"As people write it.", "event_scheduler", "off", ""},
		"NoBoolean":   {"The scheduler cannot be disabled at run time.", "event_scheduler", "DISABLED", "must be ON or OFF"},
		"Word":        {"In any case.", "transaction_isolation", "read-committed", ""},
		"NoWord":      {"No blanks.", "transaction_isolation", "READ COMMITTED", "must be one of READ-UNCOMMITTED, READ-COMMITTED"},
		"List":        {"Modes of the server.", "sql_mode", "STRICT_TRANS_TABLES,ansi_quotes", ""},
		"ListEmpty":   {"No modes.", "sql_mode", "", ""},
		"NoMode":      {"One that it does not know.", "sql_mode", "STRICT", "must be a list, separated by commas, of ALLOW_INVALID_DATES"},
		"Offset":      {"Of a time zone.", "time_zone", "-05:30", ""},
		"Zone":        {"Members have tables of time zones.", "time_zone", "Europe/Zurich", ""},
		"NoZone":      {"One that they do not have.", "time_zone", "Mars/Olympus", "must be the name of a time zone, for instance Europe/Zurich"},
		"NodeZone":    {"The zone of a node is no value.", "time_zone", "Local", "must be the name of a time zone"},
		"Collation":   {"One of the character set of members.", "collation_server", "latin1_swedish_ci", "must be one of utf8mb4_0900_ai_ci"},
		"Durability":  {"Capstan sets it.", "sync_binlog", "0", "is not a parameter that a Database can set"},
		"Group":       {"Capstan sets it.", "group_replication_bootstrap_group", "ON", "is not a parameter that a Database can set"},
		"Pool":        {"It follows from the memory.", "innodb_buffer_pool_size", "1G", "is not a parameter that a Database can set"},
		"Expiry":      {"Binary logs that stay for ever fill the volume.", "binlog_expire_logs_seconds", "0", "must be a number from 3600"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Check(tc.parameter, tc.value)
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("\n%s\nCheck(%q, %q): want %q, got %q", tc.reason, tc.parameter, tc.value, tc.want, got)
			}
		})
	}
}

func TestCheckConfig(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		config map[string]string
		want   []string
	}{
		"Fine":          {"Everything fits.", map[string]string{"wait_timeout": "600", "sort_buffer_size": "1M"}, nil},
		"Unknown":       {"Each is named.", map[string]string{"gtid_mode": "OFF", "wait_timeout": "0"}, []string{`spec.config.gtid_mode: "OFF": is not`, `spec.config.wait_timeout: "0": must be`}},
		"Memory":        {"Several sessions take it.", map[string]string{"tmp_table_size": "256M"}, []string{`spec.config.tmp_table_size: "256M": must be at most a sixteenth of the memory of a member, which is 1Gi`}},
		"Capacity":      {"The server would lower one of them by itself.", map[string]string{"innodb_io_capacity": "3000", "innodb_io_capacity_max": "2000"}, []string{`spec.config.innodb_io_capacity: "3000": must not be above innodb_io_capacity_max`}},
		"CapacityAlone": {"The one that is not set has a value, too.", map[string]string{"innodb_io_capacity": "3000"}, []string{`must not be above innodb_io_capacity_max`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := mySQL{}.CheckConfig(member("1Gi", 50, 100, tc.config))
			if len(got) != len(tc.want) {
				t.Fatalf("\n%s\n%d problems: %v", tc.reason, len(got), got)
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i].Message, want) {
					t.Errorf("\n%s\nwant %q, got %q", tc.reason, want, got[i].Message)
				}
			}
		})
	}
}

// TestBufferPool pins the sizes of members. Another size restarts nothing by itself, but reaches a member at its next start.
func TestBufferPool(t *testing.T) {
	for name, tc := range map[string]struct {
		reason      string
		memory      string
		connections int32
		want        pool
	}{
		"Least":   {"As much as the server has by default.", "768Mi", 100, pool{size: 128 * bytesMB, chunk: 64 * bytesMB, instances: 1}},
		"Default": {"The plan default.", "1Gi", 100, pool{size: 320 * bytesMB, chunk: 64 * bytesMB, instances: 1}},
		"Small":   {"The plan small.", "2Gi", 100, pool{size: 1088 * bytesMB, chunk: 64 * bytesMB, instances: 1}},
		"Medium":  {"The plan medium.", "8Gi", 200, pool{size: 5 * bytesGB, chunk: 128 * bytesMB, instances: 5}},
		"Large":   {"The plan large.", "32Gi", 400, pool{size: 23 * bytesGB, chunk: 128 * bytesMB, instances: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			m := resource.MustParse(tc.memory)
			got := bufferPool(m.Value(), tc.connections)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(pool{})); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got.size%(got.chunk*got.instances) != 0 {
				t.Error("the server would round it up")
			}
		})
	}
}

func TestLeastMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, want string
		config       map[string]string
	}{
		"Plan":   {"A hundred connections fit.", "768Mi", nil},
		"Many":   {"Each takes a part.", "1716Mi", map[string]string{"max_connections": "1000"}},
		"Wrong":  {"What is no number is told elsewhere.", "768Mi", map[string]string{"max_connections": "many"}},
		"Fewest": {"Less than the least is never enough.", "768Mi", map[string]string{"max_connections": "20"}},
	} {
		t.Run(name, func(t *testing.T) {
			least := mySQL{}.LeastMemory(member("1Gi", 50, 100, tc.config))
			if got := least.String(); got != tc.want {
				t.Errorf("\n%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
			if got := bufferPool(least.Value(), mySQL{}.Connections(member("1Gi", 50, 100, tc.config))); got.size < leastPool {
				t.Errorf("\n%s\nits pool has %d bytes", tc.reason, got.size)
			}
		})
	}
}

// TestReloading: what follows from the size and the profile, and what the spec sets, as the server writes it.
func TestReloading(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		server engine.Server
		want   map[string]string
	}{
		"Small": {
			"The least of what follows from the volume.", member("1Gi", 1, 100, nil),
			map[string]string{parameterRedo: "134217728", parameterBinlogSize: "67108864", parameterExpel: "5", parameterMajority: "15", parameterZone: "+00:00", parameterBinlogExpiry: "86400", parameterBinlogPurge: "ON"},
		},
		"Large": {
			"The most of it.", member("64Gi", 2000, 100, nil),
			map[string]string{parameterRedo: "8589934592", parameterBinlogSize: "1073741824", parameterExpel: "5", parameterMajority: "15", parameterZone: "+00:00", parameterBinlogExpiry: "86400", parameterBinlogPurge: "ON"},
		},
		"Spec": {
			"In the words of the server, without unit; what needs a restart is not among it.",
			member("1Gi", 50, 100, map[string]string{"sort_buffer_size": "1M", "event_scheduler": "no", "transaction_isolation": "read-committed", "max_allowed_packet": "1000000", "max_connections": "50", "time_zone": "+01:00"}),
			map[string]string{
				parameterRedo: "167772160", parameterBinlogSize: "1073741824", parameterExpel: "5", parameterMajority: "15", parameterZone: "+01:00", parameterBinlogExpiry: "86400", parameterBinlogPurge: "ON",
				"sort_buffer_size": "1048576", "event_scheduler": "OFF", "transaction_isolation": "READ-COMMITTED", "max_allowed_packet": "999424",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reloading(tc.server)); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPaces: each profile has one of the times that were measured, and members that are left outlast what holds the group up when nodes are
// lost.
func TestPaces(t *testing.T) {
	measured := []int{0, 5, 20}
	for _, profile := range []v1alpha1.FailoverProfile{v1alpha1.FailoverFast, v1alpha1.FailoverBalanced, v1alpha1.FailoverPatient, ""} {
		p := paceOf(profile)
		if !slices.Contains(measured, p.expel) {
			t.Errorf("profile %q: a member is expelled after %d s, which nobody measured", profile, p.expel)
		}
		// Nine members survive four nodes, and wait for a second at each.
		if p.majority < 5+4 {
			t.Errorf("profile %q: members leave after %d s without a majority, and may not hear each other for that long", profile, p.majority)
		}
	}
}

// TestDocumented: the page for users lists all parameters that can be set.
func TestDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../../../docs/database-mysql.md")
	if err != nil {
		t.Fatal(err)
	}
	for begin, restart := range map[string]bool{"Take effect at once:": false, "Need a restart, which is made member by member:": true} {
		_, after, _ := strings.Cut(string(raw), begin)
		paragraph, _, _ := strings.Cut(after, "\n\n")
		var got, want []string
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(paragraph, -1) {
			got = append(got, m[1])
		}
		for _, name := range compose.SortedKeys(parameters) {
			if parameters[name].restart == restart {
				want = append(want, name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("docs/database-mysql.md, %q: -want, +got:\n%s", begin, diff)
		}
	}
}

// TestPinned: members start with what was computed when the spec asked for it. Another version of Capstan, which computes something else,
// changes nothing that they would have to restart for.
func TestPinned(t *testing.T) {
	s := member("1Gi", 50, 100, map[string]string{"wait_timeout": "600"})
	s.Pinned = map[string]string{"innodb_buffer_pool_size": "268435456", "of_another_version": "ON"}
	want := `[mysqld]
binlog_expire_logs_auto_purge=ON
binlog_expire_logs_seconds=86400
group_replication_member_expel_timeout=5
group_replication_unreachable_majority_timeout=15
innodb_buffer_pool_size=268435456
innodb_redo_log_capacity=167772160
max_binlog_size=1073741824
of_another_version=ON
`
	if diff := cmp.Diff(want, server(s)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	dynamic, err := mysqlmember.ParseDynamic(mySQL{}.Coordination(s))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(want, "\n") {
		name, _, _ := strings.Cut(line, "=")
		if _, pinned := s.Pinned[name]; !pinned && strings.Contains(line, "=") && dynamic.Parameters[name] == "" {
			t.Errorf("members would restart for %s", name)
		}
	}
}

// TestRecorded: what is recorded in the file of a member is read again.
func TestRecorded(t *testing.T) {
	for name, record := range map[string]engine.Recorded{
		"Unknown": {}, "None": {Volumes: &[]string{}}, "Some": {Volumes: &[]string{"orders-db-a"}}, "Begun": {Volumes: &[]string{}, Begun: true},
	} {
		t.Run(name, func(t *testing.T) {
			files := mySQL{}.Files(member("1Gi", 50, 100, nil), engine.Member{Generation: 1, Domain: "orders-db-pods.shop.svc", Recorded: record})
			if diff := cmp.Diff(record, mySQL{}.Recorded(files)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
	if got := (mySQL{}).Recorded(map[string]string{"member.json": "{"}); got.Volumes != nil || got.Begun {
		t.Errorf("a broken file has %v", got)
	}
}

func TestVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, a, b string
		want         int
	}{
		"Same":   {"The same series.", "9.7", "9.7", 0},
		"Later":  {"Numbers, not texts.", "9.7", "28.4", -1},
		"Second": {"The second number counts as well.", "28.10", "28.4", 1},
		"Before": {"An earlier series.", "8.4", "9.7", -1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (mySQL{}).CompareVersions(tc.a, tc.b); sign(got) != tc.want {
				t.Errorf("\n%s\nCompareVersions(%s, %s): %d", tc.reason, tc.a, tc.b, got)
			}
		})
	}
	for version, want := range map[string]bool{"9.7": true, "28.4": true, "8.4": false, "8.0": false, "9": false, "17": false, "9.x": false, "": false} {
		if got := New().CheckVersion(version) == ""; got != want {
			t.Errorf("version %q can be run: %t", version, got)
		}
	}
}

// sign is the sign of a number.
func sign(n int) int { return max(-1, min(n, 1)) }
