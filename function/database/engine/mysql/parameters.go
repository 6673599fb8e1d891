// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A kind of value that a parameter takes.
type kind int

const (
	boolean kind = iota
	integer
	memory // bytes, or with K, M or G
	enum
	list // words, separated by commas
	zone // the name of a time zone, or an offset such as +01:00
)

// A parameter that a Database may set. Bounds are from the manual, chapter Server System Variables, but narrower where the server
// takes what would stop it, or what members rely on. Parameters that are not in the table decide about members, data or durability, and
// only Capstan sets them.
type parameter struct {
	kind kind

	// least and most, of numbers.
	least, most int64

	// step that the server rounds down to; 0 for none.
	step int64

	values []string

	// restart reports whether it takes effect when a member starts.
	restart bool
}

const (
	bytesKB = int64(1) << 10
	bytesMB = int64(1) << 20
	bytesGB = int64(1) << 30

	year = 365 * 24 * 3600
)

// Parameters that other code names.
const (
	parameterConnections  = "max_connections"
	parameterBufferPool   = "innodb_buffer_pool_size"
	parameterRedo         = "innodb_redo_log_capacity"
	parameterBinlogSize   = "max_binlog_size"
	parameterBinlogExpiry = "binlog_expire_logs_seconds"
	parameterBinlogPurge  = "binlog_expire_logs_auto_purge"
	parameterIO           = "innodb_io_capacity"
	parameterIOMax        = "innodb_io_capacity_max"
	parameterZone         = "time_zone"
	parameterExpel        = "group_replication_member_expel_timeout"
	parameterMajority     = "group_replication_unreachable_majority_timeout"
)

// utc is the time zone of members.
const utc = "+00:00"

func number(least, most int64) parameter { return parameter{kind: integer, least: least, most: most} }
func oneOf(values ...string) parameter   { return parameter{kind: enum, values: values} }
func amount(least, most, step int64) parameter {
	return parameter{kind: memory, least: least, most: most, step: step}
}
func (p parameter) restarts() parameter { p.restart = true; return p }

// parameters that a Database may set.
var parameters = map[string]parameter{
	// Connections. The memory for them is taken from the buffer pool, whose size needs a restart.
	parameterConnections:      number(20, 10000).restarts(),
	"wait_timeout":            number(1, year),
	"interactive_timeout":     number(1, year),
	"net_read_timeout":        number(1, year),
	"net_write_timeout":       number(1, year),
	"max_prepared_stmt_count": number(0, 4194304),
	"max_allowed_packet":      amount(bytesKB, bytesGB, bytesKB),

	// Statements and transactions.
	"max_execution_time":         number(0, math.MaxUint32),
	"lock_wait_timeout":          number(1, year),
	"innodb_lock_wait_timeout":   number(1, 1073741824),
	"innodb_print_all_deadlocks": {kind: boolean},
	"transaction_isolation":      oneOf("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"),
	"cte_max_recursion_depth":    number(0, math.MaxUint32),
	"group_concat_max_len":       number(4, bytesGB),
	"event_scheduler":            {kind: boolean},
	parameterZone:                {kind: zone},
	"sql_mode": {kind: list, values: []string{
		"ALLOW_INVALID_DATES", "ANSI", "ANSI_QUOTES", "ERROR_FOR_DIVISION_BY_ZERO", "HIGH_NOT_PRECEDENCE", "IGNORE_SPACE", "NO_AUTO_VALUE_ON_ZERO",
		"NO_BACKSLASH_ESCAPES", "NO_ENGINE_SUBSTITUTION", "NO_UNSIGNED_SUBTRACTION", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "ONLY_FULL_GROUP_BY",
		"PAD_CHAR_TO_FULL_LENGTH", "PIPES_AS_CONCAT", "REAL_AS_FLOAT", "STRICT_ALL_TABLES", "STRICT_TRANS_TABLES", "TIME_TRUNCATE_FRACTIONAL", "TRADITIONAL",
	}},

	// Memory of sessions.
	"sort_buffer_size":    amount(32*bytesKB, bytesGB, 0),
	"join_buffer_size":    amount(128, bytesGB, 128),
	"tmp_table_size":      amount(bytesKB, bytesGB, 0),
	"max_heap_table_size": amount(16*bytesKB, bytesGB, bytesKB),

	// Disks and binary log. The server lowers a capacity to the most that it has, so that the most has to be there first.
	parameterIO:           number(100, math.MaxUint32),
	parameterIOMax:        number(1000, math.MaxUint32).restarts(),
	"binlog_row_image":    oneOf("FULL", "MINIMAL"),
	parameterBinlogExpiry: number(3600, math.MaxUint32),

	// What is read at the start, or decides about new objects.
	"innodb_ft_min_token_size": number(0, 16).restarts(),
	"innodb_ft_max_token_size": number(10, 84).restarts(),
	"innodb_sort_buffer_size":  amount(64*bytesKB, 64*bytesMB, 0).restarts(),
	"collation_server": oneOf("utf8mb4_0900_ai_ci", "utf8mb4_0900_as_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_bin", "utf8mb4_general_ci",
		"utf8mb4_unicode_520_ci", "utf8mb4_unicode_ci").restarts(),
	"performance_schema_digests_size":        number(200, 1048576).restarts(),
	"performance_schema_max_sql_text_length": number(0, 1048576).restarts(),
}

// Check a parameter that a Database sets. The remedy is empty when name and value are valid.
func Check(name, value string) (remedy string) {
	p, ok := parameters[name]
	if !ok {
		return "is not a parameter that a Database can set: remove it; docs/database-mysql.md lists all that can be set"
	}
	if _, ok := p.parsed(value); !ok {
		return p.wanted()
	}
	return ""
}

// zoneOffset is a time zone without a name.
var zoneOffset = regexp.MustCompile(`^[+-](0[0-9]|1[0-3]):[0-5][0-9]$`)

// isZone reports whether there is a time zone of a name. Members have the same names in tables.
func isZone(name string) bool {
	// An empty name is UTC, and Local is the zone of the machine that runs this.
	_, err := time.LoadLocation(name)
	return err == nil && name != "" && name != "Local"
}

// sized is a number of bytes.
var sized = regexp.MustCompile(`^([0-9]{1,19})([KMG]?)$`)

var units = map[string]int64{"": 1, "K": bytesKB, "M": bytesMB, "G": bytesGB}

var (
	yes = []string{"ON", "TRUE", "YES", "1"}
	no  = []string{"OFF", "FALSE", "NO", "0"}
)

// parsed is the value as the server reports it: numbers without unit, ON or OFF, and words in capitals. A server takes it in its file
// and at run time.
func (p parameter) parsed(value string) (string, bool) {
	upper := strings.ToUpper(value)
	switch p.kind {
	case boolean:
		if slices.Contains(yes, upper) {
			return "ON", true
		}
		return "OFF", slices.Contains(no, upper)
	case enum:
		i := slices.IndexFunc(p.values, func(v string) bool { return strings.EqualFold(v, value) })
		if i < 0 {
			return "", false
		}
		return p.values[i], true
	case list:
		return upper, upper == "" || !slices.ContainsFunc(strings.Split(upper, ","), func(w string) bool { return !slices.Contains(p.values, w) })
	case zone:
		return value, zoneOffset.MatchString(value) || isZone(value)
	default:
		n, ok := p.amount(value)
		if p.step > 0 {
			n -= n % p.step
		}
		return strconv.FormatInt(n, 10), ok && n >= p.least && n <= p.most
	}
}

// amount of a number, in bytes where it is one of memory.
func (p parameter) amount(value string) (int64, bool) {
	m := sized.FindStringSubmatch(strings.ToUpper(value))
	if m == nil || p.kind == integer && m[2] != "" || p.kind != integer && p.kind != memory {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n > math.MaxInt64/units[m[2]] {
		return 0, false
	}
	return n * units[m[2]], true
}

// wanted is what a value must be.
func (p parameter) wanted() string {
	switch p.kind {
	case boolean:
		return "must be ON or OFF"
	case enum:
		return "must be one of " + strings.Join(p.values, ", ")
	case list:
		return "must be a list, separated by commas, of " + strings.Join(p.values, ", ")
	case zone:
		return "must be the name of a time zone, for instance Europe/Zurich, or an offset such as +01:00"
	case memory:
		return fmt.Sprintf("must be from %s to %s, in bytes or with K, M or G", size(p.least), size(p.most))
	default:
		return fmt.Sprintf("must be a number from %d to %d", p.least, p.most)
	}
}

// size in the largest unit that keeps it whole.
func size(bytes int64) string {
	for _, u := range []string{"G", "M", "K"} {
		if bytes >= units[u] && bytes%units[u] == 0 {
			return strconv.FormatInt(bytes/units[u], 10) + u
		}
	}
	return strconv.FormatInt(bytes, 10)
}
