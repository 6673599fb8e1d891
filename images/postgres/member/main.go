// SPDX-License-Identifier: Apache-2.0

// Command capstan-member runs a member of a Database in its pod. As the first process of the container it starts Patroni, which
// runs PostgreSQL, and does what Patroni leaves to others: it checks the volume, keeps certificates fresh, labels the pod with
// its role, reports how the member is, and makes the roles that the platform needs:
//
//	capstan-member run
//
// Before the pod stops, the kubelet lets it promote another member:
//
//	capstan-member handover
//
// Patroni notifies it of each change of role:
//
//	capstan-member callback on_role_change replica orders-db-3f2a9c1b
//
// Before Patroni stops the PostgreSQL of a leader, for any reason, the clients of poolers have to wait, and PostgreSQL stops
// already, because Patroni looks only once in a second whether it has:
//
//	capstan-member before-stop
//
// Before Patroni promotes a member that has the lock, standbys have to leave the former leader:
//
//	capstan-member before-promotion
//
// As the first process of a pooler's container it runs PgBouncer, whose clients wait while there is no leader:
//
//	capstan-member pooler
//
// PostgreSQL has it archive each segment of the write-ahead log, and a pod of its own takes backups with it:
//
//	capstan-member archive pg_wal/000000010000000000000003
//	capstan-member backup
//
// Patroni runs it under the name pg_rewind, so that it keeps data that cannot follow before that is removed.
//
// A standby whose leader has removed what it needs next has it fetch that from the archive:
//
//	capstan-member fetch 000000010000000000000003 pg_wal/RECOVERYXLOG
//
// When backups go to a volume, a pod of its own serves it, and takes backups on request:
//
//	capstan-member repository
//
// Another pod of its own restores the latest backup and proves that it is good:
//
//	capstan-member verify
//
// And another one takes a snapshot of the volume of a member, where the storage offers that:
//
//	capstan-member snapshot --class=csi-snapshots --keep=7 --stanza=orders-db-3f2a9c1b-17
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/outcome"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/agent"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/command"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/diverged"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/layout"
)

// version is set by the linker.
var version = "unknown"

type cli struct {
	Run             agent.Command           `cmd:"" default:"1"                                                                                                                   help:"Run the member until a signal ends it."`
	Handover        command.Handover        `cmd:"" help:"Promote another member, if this one is the leader and another is fit."`
	Callback        command.Callback        `cmd:"" help:"Notify the running member of a change, as Patroni calls it."`
	BeforeStop      command.BeforeStop      `cmd:"" help:"Let clients of the poolers wait and stop PostgreSQL, if this member is the leader, as Patroni calls it before it does."`
	BeforePromotion command.BeforePromotion `cmd:"" help:"Wait until no standby receives what the former leader writes, as Patroni calls it before it promotes this member."`
	Pooler          command.Pooler          `cmd:"" help:"Run a pooler until a signal ends it."`
	Exporter        command.Exporter        `cmd:"" help:"Run the exporter of the server, and queries whose results are metrics, until a signal ends it."`
	Archive         command.Archive         `cmd:"" help:"Bring a file of the write-ahead log into the archive, as PostgreSQL calls it."`
	Fetch           command.Fetch           `cmd:"" help:"Bring a file of the write-ahead log back from the archive, as PostgreSQL calls it."`
	Backup          command.Backup          `cmd:"" help:"Take a backup, in a pod of its own."`
	Snapshot        command.Snapshot        `cmd:"" help:"Take a snapshot of the volume of a member, in a pod of its own."`
	Verify          command.Verify          `cmd:"" help:"Restore the latest backup and prove that it is good, in a pod of its own."`
	Repository      command.Repository      `cmd:"" help:"Serve a volume of backups until a signal ends it, in a pod of its own."`
	Hook            command.Hook            `cmd:"" help:"Run a hook of a change, in a pod of its own."`
	Restore         command.Restore         `cmd:"" help:"Make the data of a new Database from a backup, as Patroni calls it."`

	TerminationLog string `default:"/dev/termination-log" env:"TERMINATION_LOG" help:"File for the last words of a program that fails."`
}

func main() {
	if diverged.IsRewind(os.Args[0]) {
		os.Exit(diverged.Rewind(os.Getenv("CAPSTAN_VERSION"), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("capstan-member"), kong.Description("Runs a member of a Database."),
		kong.Writers(stdout, stderr), kong.Vars{"connection": members.FolderConnection}, kong.Exit(func(code int) { exited = code }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(log, layout.Version(version)))
	if err != nil {
		return outcome.Die(stderr, "", fmt.Errorf("cannot understand the command line: %w", err))
	}
	selected, err := parser.Parse(args)
	if exited >= 0 {
		return exited // help was requested
	}
	if err != nil {
		return outcome.Die(stderr, c.TerminationLog, fmt.Errorf("cannot understand the command line: %w: see capstan-member --help", err))
	}
	err = selected.Run()
	if errors.Is(err, command.ErrNotArchived) {
		return 1 // which is no failure
	}
	if err != nil {
		return outcome.Die(stderr, c.TerminationLog, err)
	}
	return 0
}
