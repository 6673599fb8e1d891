// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
)

// suitable is a source that can be imported.
func suitable() server {
	return server{
		place:    place{Version: "8.4.7"},
		Settings: map[string]string{"log_bin": "1", "binlog_format": "ROW", "gtid_mode": "ON", "lower_case_table_names": "0"},
		Bytes:    10 << 30, Free: 40 << 30, TargetVersion: "9.7.4-2", Databases: []database{{Name: "shop"}},
	}
}

func TestFindings(t *testing.T) {
	skips := []string{mysqlmember.SkipStoredObjects}
	for name, tc := range map[string]struct {
		reason string
		change func(*server)
		skip   []string
		want   string
	}{
		"Suitable":  {reason: "nothing stands in the way", change: func(*server) {}},
		"Later":     {reason: "no server follows a later one", change: func(s *server) { s.Version = "28.4.1" }, want: "the source has version 28.4, and this Database has 9.7"},
		"Same":      {reason: "another release of a series is no later version", change: func(s *server) { s.Version = "9.7.9" }},
		"Old":       {reason: "a version that is too old", change: func(s *server) { s.Version = "5.7.44-log" }, want: "changes can be followed from version 8.0 on"},
		"NoLog":     {reason: "without a log nothing can be followed", change: func(s *server) { s.Settings["log_bin"] = "0" }, want: `log_bin of the source is "0": start it with log_bin`},
		"Statement": {reason: "statements are not repeated", change: func(s *server) { s.Settings["binlog_format"] = "MIXED" }, want: `binlog_format of the source is "MIXED"`},
		"Anonymous": {reason: "a next leader could not know what is applied", change: func(s *server) { s.Settings["gtid_mode"] = "OFF" }, want: `gtid_mode of the source is "OFF"`},
		"Names":     {reason: "names would differ", change: func(s *server) { s.Settings["lower_case_table_names"] = "1" }, want: "names are case-sensitive here"},
		"Filtered":  {reason: "changes would be missing", change: func(s *server) { s.Filtered = "shop" }, want: "binlog_do_db"},
		"Rights":    {reason: "the user cannot follow", change: func(s *server) { s.Lacks = []string{"PROCESS"} }, want: `user "mover" lacks rights: run grant PROCESS on *.* to mover`},
		"Room":      {reason: "rows are in tables and in binary logs", change: func(s *server) { s.Free = 20 << 30 }, want: "raise spec.storage by 3 GiB"},
		"Occupied":  {reason: "rows of users would go", change: func(s *server) { s.Occupied = "shop.orders" }, want: "not empty (shop.orders): make another Database"},
		"Missing":   {reason: "a database that is not there", change: func(s *server) { s.Databases[0].Missing = true }, want: `the source has no database "shop"`},
		"Own":       {reason: "the user cannot read", change: func(s *server) { s.Databases[0].Lacks = []string{"SELECT", "EVENT"} }, want: "run grant SELECT, EVENT on `shop`.* to mover"},
		"Engines":   {reason: "a group has InnoDB only", change: func(s *server) { s.Databases[0].Engines = []string{"old"} }, want: "tables of InnoDB only: old: run alter table"},
		"Keyless":   {reason: "a group needs keys", change: func(s *server) { s.Databases[0].Keyless = []string{"a", "b"} }, want: "tables without primary key: a, b: add one"},
		"Outside":   {reason: "its parents would be missing", change: func(s *server) { s.Databases[0].Outside = []string{"lines (past)"} }, want: "lines (past): drop them"},
		"Stored":    {reason: "accounts are not copied", change: func(s *server) { s.Databases[0].Stored = []string{"view v"} }, want: "view v: make another Database with StoredObjects"},
		"Left":      {reason: "left behind on request", change: func(s *server) { s.Databases[0].Stored = []string{"view v"} }, skip: skips},
	} {
		t.Run(name, func(t *testing.T) {
			s := suitable()
			tc.change(&s)
			got := strings.Join(s.findings("mover", tc.skip), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) || strings.Contains(got, "\n") {
				t.Errorf("%s: got %q, want one with %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestPasses: a statement that the import may not repeat is passed over only if it is about what is not copied.
func TestPasses(t *testing.T) {
	for statement, want := range map[string]string{
		"CREATE USER 'foo'@'%' IDENTIFIED WITH 'caching_sha2_password'": "always",
		"GRANT SELECT ON `shop`.* TO 'foo'@'%'":                         "always",
		"SET DEFAULT ROLE rr TO foo2":                                   "always",
		"DROP ROLE rr":                                                  "always",
		"FLUSH TABLES":                                                  "always",
		"CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `shop`.`v` AS SELECT * FROM shop.t": "skip",
		"CREATE DEFINER=`root`@`localhost` TRIGGER shop.tr BEFORE INSERT ON shop.u FOR EACH ROW SET @a=1":                    "skip",
		"CREATE DEFINER=`root`@`localhost` PROCEDURE `shop`.`p`()\nSELECT 1":                                                 "skip",
		"CREATE DEFINER=`root`@`localhost` EVENT shop.e ON SCHEDULE EVERY 1 DAY DO SELECT 1":                                 "skip",
		"DROP VIEW shop.v":                            "skip",
		"ALTER TABLE shop.t ADD COLUMN event INT":     "never",
		"CREATE TABLE shop.view (id INT PRIMARY KEY)": "never",
		"ALTER TABLE shop.t COMMENT 'CREATE USER'":    "never",
		"GRANTED":         "never",
		"TRUNCATE shop.t": "never",
		"CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')": "never",
		"INSTALL PLUGIN p SONAME 'p.so'":                                "never",
	} {
		got := "never"
		switch {
		case passes(statement, nil):
			got = "always"
		case passes(statement, []string{mysqlmember.SkipStoredObjects}):
			got = "skip"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", statement, got, want)
		}
	}
}

// TestFailing: the server names the transaction and has the statement at the end. Tags are part of an id.
func TestFailing(t *testing.T) {
	for name, tc := range map[string]struct{ said, want string }{
		"Statement": {"Worker 1 failed executing transaction '23ec1a46-ea92-11f1-aeec-02fc00000001:11' at source log binlog.000001, end_log_pos 2976; Error 'Access denied' on query. " +
			"Default database: ''. Query: 'DROP USER foo'", "23ec1a46-ea92-11f1-aeec-02fc00000001:11 DROP USER foo'"},
		"Tagged": {"transaction '23ec1a46-ea92-11f1-aeec-02fc00000001:blue:4' at; Default database: 'a'. Query: 'GRANT x", "23ec1a46-ea92-11f1-aeec-02fc00000001:blue:4 GRANT x"},
		"Quoted": {
			"transaction '23ec1a46-ea92-11f1-aeec-02fc00000001:4' at; Default database: ''. Query: 'ALTER TABLE t COMMENT ''. Query: 'GRANT x",
			"23ec1a46-ea92-11f1-aeec-02fc00000001:4 ALTER TABLE t COMMENT ''. Query: 'GRANT x",
		},
		"Rows":  {"transaction '23ec1a46-ea92-11f1-aeec-02fc00000001:37' at source log; Error executing row event: 'Table 'shop.u' doesn't exist'", ""},
		"Other": {"transaction 'ANONYMOUS' at source log; Default database: ''. Query: 'DROP USER foo'", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if m := failing.FindStringSubmatch(tc.said); m != nil {
				got = m[1] + " " + m[2]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestPatterns: a name with an underscore is no pattern of other names.
func TestPatterns(t *testing.T) {
	r := &run{config: members.Import{Databases: []members.ImportDatabase{{Name: "shop_b"}, {Name: "a"}}}}
	if diff := cmp.Diff([]string{"a.%", `shop\_b.%`}, r.patterns()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestStalls: it takes ten minutes with the same place and something that waits, from the first look of a leader on.
func TestStalls(t *testing.T) {
	var p pace
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		reason string
		place  string
		waits  int64
		after  time.Duration
		want   bool
	}{
		{reason: "a leader looks for the first time, and its channel is new", waits: 8 << 20},
		{reason: "the channel connects", waits: 8 << 20, after: 9 * time.Minute},
		{reason: "it moves", place: "binlog.1 4", waits: 8 << 20, after: 9 * time.Minute},
		{reason: "it stands", place: "binlog.1 4", waits: 8 << 20, after: 10 * time.Minute, want: true},
		{reason: "it moves again", place: "binlog.1 9", waits: 8 << 20, after: time.Second},
		{reason: "nothing waits", place: "binlog.1 9", after: time.Hour},
	} {
		at = at.Add(step.after)
		if got := p.stalls(step.place, step.waits, at); got != step.want {
			t.Errorf("%s: got %t, want %t", step.reason, got, step.want)
		}
	}
}

// TestBehind: logs before the place count for nothing, and the ones after it as a whole.
func TestBehind(t *testing.T) {
	logs := [][]string{{"binlog.000009", "500"}, {"binlog.000010", "300"}, {"binlog.000011", "40"}}
	for name, tc := range map[string]struct {
		file     string
		position uint64
		want     int64
	}{"First": {"binlog.000009", 100, 740}, "Middle": {"binlog.000010", 300, 40}, "End": {"binlog.000011", 40, 0}, "Beyond": {"binlog.000011", 90, 0}} {
		if got := behind(logs, tc.file, tc.position); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func TestSeries(t *testing.T) {
	for version, want := range map[string][2]int{"8.0.46-0ubuntu0.24.04.1": {8, 0}, "9.7.4-2": {9, 7}, "28.10.1": {28, 10}, "": {}, "x": {}} {
		if got := series(version); got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}
