// SPDX-License-Identifier: Apache-2.0

// Command capstan-member runs a member of a Database with MySQL in its pod. As the first process of the container it runs the server and
// brings it into the group of members, which elects the leader. It checks the volume, keeps certificates fresh, labels the pod with its role,
// reports how the member is, and makes the accounts that the platform needs:
//
//	capstan-member run
//
// Before the pod stops, the kubelet lets it make another member the leader:
//
//	capstan-member handover
//
// A pod of its own takes backups with it, and another one restores the latest backup and proves that it is good:
//
//	capstan-member backup
//	capstan-member verify
//
// Another one serves a volume of backups:
//
//	capstan-member repository
//
// A pod of its own runs SQL or sends a request around a change of members:
//
//	capstan-member hook
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/outcome"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/agent"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/command"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
)

// version is set by the linker.
var version = "unknown"

type cli struct {
	Run      agent.Command    `cmd:"" default:"1"                                                                      help:"Run the member until a signal ends it."`
	Handover command.Handover `cmd:"" help:"Make another member the leader, if this one is and another is fit."`
	Backup   command.Backup   `cmd:"" help:"Take a backup, in a pod of its own."`
	Verify   command.Verify   `cmd:"" help:"Restore the latest backup and prove that it is good, in a pod of its own."`
	Hook     command.Hook     `cmd:"" help:"Run a hook of a change, in a pod of its own."`

	Repository command.Repository `cmd:"" help:"Serve a volume of backups until a signal ends it, in a pod of its own."`

	TerminationLog string `default:"/dev/termination-log" env:"TERMINATION_LOG" help:"File for the last words of a program that fails."`
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

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
	if err := selected.Run(); err != nil {
		return outcome.Die(stderr, c.TerminationLog, err)
	}
	return 0
}
