// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// channel sees to it that the channel runs, and returns up to which place changes are applied.
//
// It applies changes as an account that has rights in the databases to fill, and no others. It begins at a place that was noted, and passes over
// transactions that are here, by their ids: so a next leader, whose own channel does not know how far the last one was, applies each once.
func (r *run) channel(ctx context.Context) (applied string, err error) {
	// What is passed over comes in rows, and each stops the channel.
	for range passesAtOnce {
		applied, again, err := r.keep(ctx)
		if !again || err != nil {
			return applied, err
		}
		if err := importing.Pause(ctx, settles); err != nil {
			return "", err
		}
	}
	return "", nil
}

const (
	// passesAtOnce is how many statements one look passes over, and settles the time after which the next one has stopped the channel.
	passesAtOnce, settles = 200, 200 * time.Millisecond
)

// runs is what the server says of a part of the channel that runs.
const runs = "Yes"

// keep sees to the channel once, and reports whether a statement was passed over.
func (r *run) keep(ctx context.Context) (applied string, passed bool, err error) {
	row, err := r.here.ImportStatus(ctx)
	if err != nil {
		return "", false, err
	}
	with := fmt.Sprint(r.from.Host, r.from.Port, r.from.TLS, r.from.CA, r.from.User, r.from.Password)
	if row == nil || r.seen.channel != with || row["Replicate_Wild_Do_Table"] != strings.Join(r.patterns(), ",") {
		if err := r.connect(ctx); err != nil {
			return "", false, err
		}
		r.seen.channel = with
		return "", false, nil
	}
	if other := row["Source_UUID"]; other != "" && other != r.state.Server {
		r.state.Other = importing.Shortened(other, importing.MaxQuoted)
		return "", false, errors.Join(errors.New("another server than the one that was copied has answered at the host of the source: make another Database"), r.here.StopImport(ctx), r.note(ctx))
	}
	reads, applies := row["Replica_IO_Running"], row["Replica_SQL_Running"]
	if reads == runs && applies == runs {
		return row["Relay_Source_Log_File"] + row["Exec_Source_Log_Pos"], false, r.notePlace(ctx, row)
	}
	if applies != runs {
		passed, err = r.stopped(ctx, row["Last_SQL_Errno"])
	}
	if err == nil && reads != runs && row["Last_IO_Errno"] != "0" {
		err = errors.New(unread(row["Last_IO_Errno"]))
	}
	if applies != runs || reads == "No" {
		err = errors.Join(err, r.begin(ctx))
	}
	return "", passed, err
}

// unread is why the log of the source cannot be read, by the code of the error.
func unread(code string) string {
	if code == "13114" || code == "1236" {
		return "the source has removed binary logs with changes that are not here: make another Database, and raise binlog_expire_logs_seconds there"
	}
	if code == "13117" {
		return "the source has the server_id of this member: run set persist server_id there, with another number"
	}
	return fmt.Sprintf("MySQL cannot read the binary log of the source (error %s): see the log of the leader's pod for why", code)
}

// notePlace from which on a next leader may follow: everything before it is applied.
func (r *run) notePlace(ctx context.Context, row map[string]string) error {
	position, err := strconv.ParseUint(row["Exec_Source_Log_Pos"], 10, 64)
	if err != nil || row["Relay_Source_Log_File"] == "" || r.state.File == row["Relay_Source_Log_File"] && r.state.Position == position {
		return nil //nolint:nilerr // There is no place yet.
	}
	r.state.File, r.state.Position = row["Relay_Source_Log_File"], position
	return r.note(ctx)
}

// patterns of the tables that are followed.
func (r *run) patterns() (all []string) {
	for _, d := range r.names() {
		all = append(all, mysql.Pattern(d)+".%")
	}
	return all
}

// connect to the source, in place of what there is.
func (r *run) connect(ctx context.Context) error {
	if err := r.here.EndImport(ctx); err != nil {
		return err
	}
	patterns := r.patterns()
	for i := range patterns {
		patterns[i] = mysql.Text(patterns[i])
	}
	verify := 0
	if r.from.TLS == mysqlmember.ImportVerifyFull {
		verify = 1
	}
	channel := " FOR CHANNEL " + mysql.Text(mysql.ImportChannel)
	err := r.here.Do(ctx, "make the channel of the import",
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = %s, SOURCE_PORT = %d, SOURCE_LOG_FILE = %s, SOURCE_LOG_POS = %d, SOURCE_AUTO_POSITION = 0, "+
			"SOURCE_SSL = 1, SOURCE_SSL_CA = %s, SOURCE_SSL_VERIFY_SERVER_CERT = %d, SOURCE_TLS_VERSION = 'TLSv1.2,TLSv1.3', SOURCE_CONNECT_RETRY = 5, SOURCE_RETRY_COUNT = 100000, "+
			"SOURCE_HEARTBEAT_PERIOD = 10, REQUIRE_ROW_FORMAT = 1, REQUIRE_TABLE_PRIMARY_KEY_CHECK = ON, PRIVILEGE_CHECKS_USER = %s@localhost",
			mysql.Text(r.from.Host), r.from.Port, mysql.Text(r.state.File), r.state.Position, mysql.Text(r.from.CA), verify, mysqlmember.AccountImport)+channel,
		"CHANGE REPLICATION FILTER REPLICATE_WILD_DO_TABLE = ("+strings.Join(patterns, ", ")+")"+channel)
	if err != nil {
		return err
	}
	return r.begin(ctx)
}

// begin what the channel does. The login is not in the data, and not in backups.
func (r *run) begin(ctx context.Context) error {
	return r.here.Do(ctx, "follow the source", fmt.Sprintf("START REPLICA USER = %s PASSWORD = %s FOR CHANNEL %s", mysql.Text(r.from.User), mysql.Text(r.from.Password), mysql.Text(mysql.ImportChannel)))
}

// failures of a channel, by the code of the error.
var failures = map[string]string{
	"3100": "a transaction of the source has more than 150 MB, which no group takes: make another Database, and let its clients write in batches",
	"3750": "the source has a table without primary key now, which no group takes: make another Database",
	"1030": "the volume is full, or a table is broken: see the log of the leader's pod",
}

var (
	// failing is what the server says of a statement that it could not apply.
	failing = regexp.MustCompile(`(?s)transaction '([0-9a-f-]{36}:(?:[a-z_][a-z_0-9]*:)?[0-9]+)'.*?Default database: '[^']*'\. Query: '(.*)`)
	// accounts are statements about what is not copied: accounts, and what has no effect on data.
	accounts = regexp.MustCompile(`^(?i:(?:CREATE|ALTER|DROP|RENAME) (?:USER|ROLE)|GRANT|REVOKE|SET (?:PASSWORD|DEFAULT ROLE)|FLUSH)\b`)
	// stored are statements about stored objects.
	stored = regexp.MustCompile("^(?i:(?:CREATE|ALTER|DROP)(?: OR REPLACE)?(?: ALGORITHM ?= ?\\w+)?(?: DEFINER ?= ?`[^`]*`@`[^`]*`)?(?: SQL SECURITY \\w+)?(?: AGGREGATE)? (?:VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT))\\b")
)

// passes reports whether a statement that cannot be applied is about what is not copied, so that it is passed over.
func passes(statement string, skip []string) bool {
	return accounts.MatchString(statement) || slices.Contains(skip, mysqlmember.SkipStoredObjects) && stored.MatchString(statement)
}

// stopped is why changes are not applied any more. Statements about what is not copied are passed over. Such a statement is a transaction of its own.
func (r *run) stopped(ctx context.Context, code string) (passed bool, err error) {
	var said [][]string
	if err := r.here.Session(ctx, "find out what is not applied", func(c *sql.Conn) (err error) {
		said, err = list(ctx, c, "SELECT last_error_message FROM performance_schema.replication_applier_status_by_worker WHERE last_error_number <> 0 AND channel_name = "+mysql.Text(mysql.ImportChannel))
		return err
	}); err != nil {
		return false, err
	}
	for _, one := range said {
		m := failing.FindStringSubmatch(one[0])
		if m == nil || !passes(m[2], r.config.Skip) {
			continue
		}
		if err := r.here.Pass(ctx, m[1]); err != nil {
			return false, err
		}
		r.log.Info("passed over a statement of the source about accounts or stored objects, which are not copied", "transaction", m[1])
		passed = true
	}
	if passed || code == "0" {
		return passed, nil
	}
	if why := failures[code]; why != "" {
		return false, errors.New(why)
	}
	return false, fmt.Errorf("MySQL cannot apply a change of the source (error %s): see the log of the leader's pod for the cause; if a change of the schema is, make another Database", code)
}
