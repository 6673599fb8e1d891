// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A kind of value that a parameter takes.
type kind int

const (
	boolean kind = iota
	integer
	decimal
	enum
	memory   // an integer of unit, or with B, kB, MB, GB or TB
	duration // an integer of unit, or with us, ms, s, min, h or d
	zone     // a time zone
	classes  // a list of words; a - before a word takes it away
	word     // a name
)

// A parameter that a Database may set. Bounds and what needs a restart are what the servers report (postgres --describe-config,
// recorded in testdata and compared by a test) and PostgreSQL's documentation has, chapter Server Configuration. Bounds are
// narrower where the server takes what would stop it, or what members rely on. Parameters that are not in the table
// decide about members, data or durability, and only Capstan sets them.
type parameter struct {
	kind kind

	// unit of a plain number: for memory in bytes, for durations in microseconds.
	unit int64

	// least and most, in units.
	least, most float64

	// off is a value below least that turns the parameter off, when hasOff.
	off    float64
	hasOff bool

	values []string

	// restart reports whether it is only read at the start. restartUntil, when not 0, is the first version in which a reload is
	// enough.
	restart      bool
	restartUntil int

	// since is the first version that has it.
	since int

	// extension whose parameter it is.
	extension string

	// library whose parameter it is. Sessions load it as soon as one of its parameters is set.
	library string
}

const (
	bytesKB = int64(1) << 10
	bytesMB = int64(1) << 20
	block   = 8 * bytesKB
	ms      = int64(1000)
	second  = 1000 * ms
	minute  = 60 * second

	maxInt = float64(math.MaxInt32)
)

func number(least, most float64) parameter { return parameter{kind: integer, least: least, most: most} }
func decimalOf(least, most float64) parameter {
	return parameter{kind: decimal, least: least, most: most}
}
func oneOf(values ...string) parameter { return parameter{kind: enum, values: values} }
func amount(unit int64, least, most float64) parameter {
	return parameter{kind: memory, unit: unit, least: least, most: most}
}

func lasting(unit int64, least, most float64) parameter {
	return parameter{kind: duration, unit: unit, least: least, most: most}
}

func (p parameter) offAt(v float64) parameter     { p.off, p.hasOff = v, true; return p }
func (p parameter) restarts() parameter           { p.restart = true; return p }
func (p parameter) restartsUntil(v int) parameter { p.restart, p.restartUntil = true, v; return p }
func (p parameter) from(v int) parameter          { p.since = v; return p }
func (p parameter) of(e string) parameter         { p.extension = e; return p }
func (p parameter) explains() parameter           { p.library = libraryExplain; return p }

// parameters that a Database may set.
var parameters = merged(map[string]parameter{
	// Connections.
	"max_connections":                     number(20, 10000).restarts(),
	"superuser_reserved_connections":      number(3, 100).restarts(),
	"idle_in_transaction_session_timeout": lasting(ms, 0, maxInt),
	"idle_session_timeout":                lasting(ms, 0, maxInt),
	"statement_timeout":                   lasting(ms, 0, maxInt),
	"transaction_timeout":                 lasting(ms, 0, maxInt).from(17),
	"lock_timeout":                        lasting(ms, 0, maxInt),
	"deadlock_timeout":                    lasting(ms, 1, maxInt),
	"max_locks_per_transaction":           number(10, 100000).restarts(),
	"max_pred_locks_per_transaction":      number(10, 100000).restarts(),
	"max_prepared_transactions":           number(0, 10000).restarts(),

	// Memory.
	"shared_buffers":            amount(block, 16, 1073741823).restarts(),
	"effective_cache_size":      amount(block, 1, maxInt),
	"work_mem":                  amount(bytesKB, 64, maxInt),
	"hash_mem_multiplier":       decimalOf(1, 1000),
	"maintenance_work_mem":      amount(bytesKB, 1024, maxInt),
	"autovacuum_work_mem":       amount(bytesKB, 1024, maxInt).offAt(-1),
	"logical_decoding_work_mem": amount(bytesKB, 64, maxInt),
	"temp_buffers":              amount(block, 100, 1073741823),
	"temp_file_limit":           amount(bytesKB, 0, maxInt).offAt(-1),
	"vacuum_buffer_usage_limit": amount(bytesKB, 128, 16777216).offAt(0).from(17),
	"gin_pending_list_limit":    amount(bytesKB, 64, maxInt),
	"track_activity_query_size": amount(1, 100, 1048576).restarts(),

	// Workers.
	"max_worker_processes":              number(8, 1024).restarts(),
	"max_parallel_workers":              number(0, 1024),
	"max_parallel_workers_per_gather":   number(0, 1024),
	"max_parallel_maintenance_workers":  number(0, 1024),
	"max_logical_replication_workers":   number(0, 1024).restarts(),
	"max_sync_workers_per_subscription": number(0, 1024),
	"effective_io_concurrency":          number(0, 1000),
	"maintenance_io_concurrency":        number(0, 1000),

	// Write-ahead log and replication.
	"wal_level":                    oneOf("replica", "logical").restarts(),
	"wal_buffers":                  amount(block, 4, 262143).offAt(-1).restarts(),
	"wal_compression":              oneOf("off", "on", "pglz", "lz4", "zstd"),
	"wal_writer_delay":             lasting(ms, 1, 10000),
	"wal_keep_size":                amount(bytesMB, 0, maxInt),
	"max_wal_size":                 amount(bytesMB, 64, maxInt),
	"min_wal_size":                 amount(bytesMB, 32, maxInt),
	"max_slot_wal_keep_size":       amount(bytesMB, 64, maxInt),
	"max_wal_senders":              number(20, 1000).restarts(),
	"max_replication_slots":        number(20, 1000).restarts(),
	"checkpoint_timeout":           lasting(second, 30, 86400),
	"checkpoint_completion_target": decimalOf(0, 1),
	"commit_delay":                 number(0, 100000),
	"commit_siblings":              number(0, 1000),
	"max_standby_streaming_delay":  lasting(ms, 0, maxInt).offAt(-1),
	"track_commit_timestamp":       parameter{kind: boolean}.restarts(),

	// Background writer and vacuum.
	"bgwriter_delay":                        lasting(ms, 10, 10000),
	"bgwriter_lru_maxpages":                 number(0, 1073741823),
	"bgwriter_lru_multiplier":               decimalOf(0, 10),
	"autovacuum_naptime":                    lasting(second, 1, 2147483),
	"autovacuum_max_workers":                number(1, 100).restartsUntil(18),
	"autovacuum_worker_slots":               number(1, 100).restarts().from(18),
	"autovacuum_vacuum_threshold":           number(0, maxInt),
	"autovacuum_vacuum_max_threshold":       number(0, maxInt).offAt(-1).from(18),
	"autovacuum_vacuum_insert_threshold":    number(0, maxInt).offAt(-1),
	"autovacuum_analyze_threshold":          number(0, maxInt),
	"autovacuum_vacuum_scale_factor":        decimalOf(0, 100),
	"autovacuum_vacuum_insert_scale_factor": decimalOf(0, 100),
	"autovacuum_analyze_scale_factor":       decimalOf(0, 100),
	"autovacuum_vacuum_cost_delay":          lasting(ms, 0, 100).offAt(-1),
	"autovacuum_vacuum_cost_limit":          number(1, 10000).offAt(-1),
	"autovacuum_freeze_max_age":             number(100000, 2000000000).restarts(),
	"autovacuum_multixact_freeze_max_age":   number(10000, 2000000000).restarts(),
	"vacuum_cost_delay":                     lasting(ms, 0, 100),
	"vacuum_cost_limit":                     number(1, 10000),
	"vacuum_freeze_min_age":                 number(0, 1000000000),
	"vacuum_freeze_table_age":               number(0, 2000000000),
	"vacuum_failsafe_age":                   number(0, 2100000000),
	"vacuum_multixact_freeze_min_age":       number(0, 1000000000),
	"vacuum_multixact_freeze_table_age":     number(0, 2000000000),
	"vacuum_multixact_failsafe_age":         number(0, 2100000000),

	// Planner.
	"min_parallel_table_scan_size": amount(block, 0, 715827882),
	"min_parallel_index_scan_size": amount(block, 0, 715827882),
	"default_statistics_target":    number(1, 10000),
	"constraint_exclusion":         oneOf("partition", "on", "off"),
	"cursor_tuple_fraction":        decimalOf(0, 1),
	"from_collapse_limit":          number(1, maxInt),
	"join_collapse_limit":          number(1, maxInt),
	"geqo_threshold":               number(2, maxInt),
	"plan_cache_mode":              oneOf("auto", "force_generic_plan", "force_custom_plan"),

	// Clients.
	"bytea_output":                  oneOf("hex", "escape"),
	"default_toast_compression":     oneOf("pglz", "lz4"),
	"default_transaction_isolation": oneOf("serializable", "repeatable read", "read committed", "read uncommitted"),
	"intervalstyle":                 oneOf("postgres", "postgres_verbose", "sql_standard", "iso_8601"),
	"timezone":                      {kind: zone},

	// Log and statistics.
	"log_autovacuum_min_duration": lasting(ms, 0, maxInt).offAt(-1),
	"log_error_verbosity":         oneOf("terse", "default", "verbose"),
	"log_min_duration_statement":  lasting(ms, 0, maxInt).offAt(-1),
	"log_min_duration_sample":     lasting(ms, 0, maxInt).offAt(-1),
	"log_min_messages":            oneOf("info", "notice", "warning", "error", "log"),
	"log_min_error_statement":     oneOf("info", "notice", "warning", "error", "log"),
	"log_parameter_max_length":    amount(1, 0, 1073741823).offAt(-1),
	"log_statement":               oneOf("none", "ddl", "mod", "all"),
	"log_statement_sample_rate":   decimalOf(0, 1),
	"log_transaction_sample_rate": decimalOf(0, 1),
	"log_temp_files":              amount(bytesKB, 0, maxInt).offAt(-1),
	"track_functions":             oneOf("none", "pl", "all"),

	// Extensions.
	"pg_stat_statements.max":           number(100, 1073741823).restarts().of("pg_stat_statements"),
	"pg_stat_statements.track":         oneOf("none", "top", "all").of("pg_stat_statements"),
	"pg_stat_statements.track_utility": parameter{kind: boolean}.of("pg_stat_statements"),
	"pgaudit.log": parameter{kind: classes, values: []string{
		"none", "all", "read", "write", "function", "role", "ddl", "misc", "misc_set",
	}}.of(extensionAudit),
	"pgaudit.log_level":                     oneOf("log", "notice", "info", "warning").of(extensionAudit),
	"pgaudit.log_parameter_max_size":        number(0, maxInt).from(17).of(extensionAudit),
	"pgaudit.role":                          parameter{kind: word}.of(extensionAudit),
	"cron.log_min_messages":                 oneOf("info", "notice", "warning", "error", "log", "fatal", "panic").of(extensionCron),
	"cron.max_running_jobs":                 number(1, 100).restarts().of(extensionCron),
	"cron.timezone":                         parameter{kind: zone}.restarts().of(extensionCron),
	"auto_explain.log_format":               oneOf("text", "xml", "json", "yaml").explains(),
	"auto_explain.log_level":                oneOf("info", "notice", "warning", "log").explains(),
	"auto_explain.log_min_duration":         lasting(ms, 0, maxInt).offAt(-1).explains(),
	"auto_explain.log_parameter_max_length": amount(1, 0, maxInt).offAt(-1).from(17).explains(),
	"auto_explain.sample_rate":              decimalOf(0, 1).explains(),
}, alike(parameter{kind: boolean}.of(extensionAudit),
	"pgaudit.log_catalog", "pgaudit.log_client", "pgaudit.log_parameter", "pgaudit.log_relation", "pgaudit.log_rows", "pgaudit.log_statement",
	"pgaudit.log_statement_once",
), alike(parameter{kind: boolean}.restarts().of(extensionCron), "cron.log_run", "cron.log_statement"), alike(parameter{kind: boolean}.of(extensionCron), "cron.launch_active_jobs"), alike(parameter{kind: boolean}.explains(),
	"auto_explain.log_analyze", "auto_explain.log_buffers", "auto_explain.log_nested_statements", "auto_explain.log_settings",
	"auto_explain.log_timing", "auto_explain.log_triggers", "auto_explain.log_verbose", "auto_explain.log_wal",
), alike(parameter{kind: boolean},
	"enable_bitmapscan", "enable_hashagg", "enable_hashjoin", "enable_incremental_sort", "enable_indexonlyscan",
	"enable_indexscan", "enable_material", "enable_memoize", "enable_mergejoin", "enable_nestloop",
	"enable_partition_pruning", "enable_partitionwise_aggregate", "enable_partitionwise_join", "enable_seqscan",
	"enable_sort", "geqo", "hot_standby_feedback", "log_checkpoints", "log_connections", "log_disconnections",
	"log_duration", "log_lock_waits", "log_recovery_conflict_waits", "parallel_leader_participation",
	"synchronize_seqscans", "track_io_timing", "track_wal_io_timing",
), alike(decimalOf(0, math.MaxFloat64),
	"cpu_index_tuple_cost", "cpu_operator_cost", "cpu_tuple_cost", "parallel_setup_cost", "parallel_tuple_cost",
	"random_page_cost", "seq_page_cost",
))

// alike are parameters that take the same values.
func alike(p parameter, names ...string) map[string]parameter {
	all := map[string]parameter{}
	for _, name := range names {
		all[name] = p
	}
	return all
}

func merged(table map[string]parameter, others ...map[string]parameter) map[string]parameter {
	for _, o := range others {
		maps.Copy(table, o)
	}
	return table
}

// ParametersOfLibraries are the names of parameters that the servers of a major version have only with an extension or a library, sorted.
func ParametersOfLibraries(major int) []string {
	var names []string
	for name, p := range parameters {
		if (p.extension != "" || p.library != "") && major >= p.since {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Check a parameter that a Database sets. The remedy is empty when name and value are valid.
func Check(name, value string, major int, extensions []string) (remedy string) {
	p, ok := parameters[name]
	switch {
	case !ok:
		return "is not a parameter that a Database can set: remove it; docs/database.md lists all that can be set"
	case major < p.since:
		return fmt.Sprintf("does not exist in version %d: remove it", major)
	case p.extension != "" && !slices.Contains(extensions, p.extension):
		return fmt.Sprintf("needs the extension %[1]q: add %[1]q to spec.extensions", p.extension)
	case p.accepts(value):
		return ""
	default:
		return p.wanted()
	}
}

// needsRestart reports whether a parameter is only read when a server starts.
func needsRestart(name string, major int) bool {
	p := parameters[name]
	return p.restart && (p.restartUntil == 0 || major < p.restartUntil)
}

// bytesOf a value of a parameter of memory.
func bytesOf(name, value string) (int64, bool) {
	p := parameters[name]
	n, ok := p.parsed(value)
	if p.kind != memory || !ok {
		return 0, false
	}
	return int64(n * float64(p.unit)), true
}

var booleans = []string{"on", "off", "true", "false", "yes", "no", "1", "0"}

// zoneName is the name of a time zone, such as Europe/Zurich.
var zoneName = regexp.MustCompile(`^[A-Za-z][-+A-Za-z0-9_]*(/[A-Za-z0-9][-+A-Za-z0-9_]*){0,2}$`)

// roleName is the name of a role that needs no quotes.
var roleName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

func (p parameter) accepts(value string) bool {
	switch p.kind {
	case boolean:
		return slices.Contains(booleans, strings.ToLower(value))
	case enum:
		return slices.Contains(p.values, strings.ToLower(value))
	case zone:
		return zoneName.MatchString(value)
	case word:
		return roleName.MatchString(value)
	case classes:
		return !slices.ContainsFunc(strings.Split(value, ","), func(c string) bool {
			return !slices.Contains(p.values, strings.TrimPrefix(strings.ToLower(strings.TrimSpace(c)), "-"))
		})
	default:
		n, ok := p.parsed(value)
		return ok && (n >= p.least && n <= p.most || p.hasOff && n == p.off)
	}
}

// measured is a number with a unit.
var measured = regexp.MustCompile(`^(-?[0-9]+(?:[.][0-9]+)?) ?([a-zA-Z]*)$`)

// units in bytes, and in microseconds.
var (
	memoryUnits   = map[string]int64{"B": 1, "kB": bytesKB, "MB": bytesMB, "GB": bytesMB << 10, "TB": bytesMB << 20}
	durationUnits = map[string]int64{"us": 1, "ms": ms, "s": second, "min": minute, "h": 60 * minute, "d": 24 * 60 * minute}
)

// parsed number in units of the parameter.
func (p parameter) parsed(value string) (float64, bool) {
	m := measured.FindStringSubmatch(value)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, false
	}
	switch {
	case m[2] == "" && p.kind == decimal:
		return n, true
	case m[2] == "":
		return n, n == math.Trunc(n) || p.kind == duration
	case p.kind == memory && memoryUnits[m[2]] > 0:
		return math.Round(n * float64(memoryUnits[m[2]]) / float64(p.unit)), true
	case p.kind == duration && durationUnits[m[2]] > 0:
		return n * float64(durationUnits[m[2]]) / float64(p.unit), true
	default:
		return 0, false
	}
}

// wanted is what a value must be.
func (p parameter) wanted() string {
	var words string
	switch p.kind {
	case boolean:
		return "must be on or off"
	case enum:
		return "must be one of " + strings.Join(p.values, ", ")
	case zone:
		return "must be the name of a time zone, for instance Europe/Zurich"
	case word:
		return "must be the name of a role: lower case letters, digits and _"
	case classes:
		return "must be a list of " + strings.Join(p.values, ", ") + "; a - before one takes it away"
	case memory:
		words = fmt.Sprintf("must be from %s to %s, with kB, MB or GB", size(p.least*float64(p.unit)), size(p.most*float64(p.unit)))
	case duration:
		words = fmt.Sprintf("must be from %s to %s, with ms, s, min, h or d", span(p.least*float64(p.unit)), span(p.most*float64(p.unit)))
	default:
		words = fmt.Sprintf("must be a number from %s to %s", plain(p.least), plain(p.most))
		if p.most == math.MaxFloat64 {
			words = "must be a number of at least " + plain(p.least)
		}
	}
	if p.hasOff {
		words += fmt.Sprintf(", or %s to turn it off", plain(p.off))
	}
	return words
}

func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// size in the largest unit that keeps it whole.
func size(bytes float64) string {
	text := whole(bytes, memoryUnits, "TB", "GB", "MB", "kB")
	if kb := math.Floor(bytes / float64(bytesKB)); text == "" && kb >= 1 {
		return plain(kb) + "kB"
	}
	return cmp.Or(text, plain(bytes)+"B")
}

// span of time in the largest unit that keeps it whole.
func span(us float64) string {
	return cmp.Or(whole(us, durationUnits, "d", "h", "min", "s"), plain(us/float64(ms))+"ms")
}

// whole number in the first of the units that it is a multiple of; "" if there is none.
func whole(n float64, units map[string]int64, names ...string) string {
	for _, u := range names {
		if v := n / float64(units[u]); v >= 1 && v == math.Trunc(v) {
			return plain(v) + u
		}
	}
	return ""
}
