// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	corev1 "k8s.io/api/core/v1"

	accessv1alpha1 "github.com/capstan-dev/capstan/apis/access/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A client of a server, in the container of its members.
type client struct {
	name      string
	engine    v1alpha1.Engine
	container string
	// program with its first arguments, for a database of the server, which may be empty.
	program func(database string) []string
}

var clients = []client{
	{name: "psql", engine: v1alpha1.EnginePostgres, container: "postgres", program: func(database string) []string {
		if database == "" {
			return []string{"psql"}
		}

		return []string{"psql", "--dbname=" + database}
	}},
	{name: "mysql", engine: v1alpha1.EngineMySQL, container: "mysql", program: func(database string) []string {
		argv := []string{"mysql", "--socket=/run/mysqld/mysqld.sock", "--user=capstan_member"}
		if database != "" {
			argv = append(argv, "--database="+database)
		}

		return argv
	}},
}

// shells are the commands that open a client in the pod of the leader.
func (p *plugin) shells() []*cobra.Command {
	all := make([]*cobra.Command, 0, len(clients))
	for _, cl := range clients {
		var consumer, member string
		cmd := &cobra.Command{
			Use: cl.name + " DATABASE [-- ARGUMENTS]", Short: fmt.Sprintf("Open %s in the pod of the leader", cl.name),
			Long: fmt.Sprintf("Open %s in the pod of the leader, as superuser, by `kubectl exec`.\n\n"+
				"It needs the right to create pods/exec. Arguments after -- go to %s.", cl.name, cl.name),
			Example: fmt.Sprintf("  kubectl capstan %s orders-db\n  echo 'SELECT 1' | kubectl capstan %s orders-db", cl.name, cl.name),
			GroupID: groupDatabase, Args: cobra.MinimumNArgs(1), ValidArgsFunction: p.names(database),
			RunE: func(cmd *cobra.Command, args []string) error { return p.shell(cmd, cl, args, consumer, member) },
		}
		cmd.Flags().StringVar(&member, "member", "", "Another member than the leader")
		_ = cmd.RegisterFlagCompletionFunc("member", p.members)
		if cl.engine == v1alpha1.EnginePostgres {
			cmd.Flags().StringVar(&consumer, "consumer", "", "Have the database and the rights of this consumer, as its sessions do. RESET ROLE ends that: it is no protection")
		}
		all = append(all, cmd)
	}

	return all
}

func (p *plugin) shell(cmd *cobra.Command, cl client, args []string, consumer, member string) error {
	own := len(args)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		own = dash
	}
	if own < 1 || own > 2 {
		return fmt.Errorf("name one Database, and put the arguments of %s after --", cl.name)
	}
	name, err := one(args[:own], database)
	if err != nil {
		return err
	}
	c, err := p.connect()
	if err != nil {
		return err
	}
	d, err := c.Database(cmd.Context(), name)
	if err != nil {
		return err
	}
	if d.Spec.Engine != cl.engine {
		other := clients[slices.IndexFunc(clients, func(o client) bool { return o.engine == d.Spec.Engine })]

		return fmt.Errorf("the Database %s is %s: use kubectl capstan %s", name, d.Spec.Engine, other.name)
	}
	pods, err := c.Members(cmd.Context(), name)
	if err != nil {
		return err
	}
	pod, err := server(d, pods, member)
	if err != nil {
		return err
	}
	login, err := consumerOf(d, consumer)
	if err != nil {
		return err
	}
	argv := append([]string{"exec", "--stdin", pod, "--namespace=" + c.Namespace, "--container=" + cl.container}, inherited(cmd)...)
	if interactive(cmd.InOrStdin()) {
		argv = append(argv, "--tty")
	}
	argv = append(argv, "--")
	if login.role != "" {
		argv = append(argv, "env", "PGOPTIONS=-c role="+login.role)
	}
	argv = append(append(argv, cl.program(login.database)...), args[own:]...)

	return kubectl(cmd, argv)
}

// server is the pod of a member: of the one that is named, or of the leader. The labels of the pods are more recent than the status.
func server(d *v1alpha1.Database, pods []corev1.Pod, member string) (string, error) {
	for _, p := range pods {
		if member == "" && p.Labels[observev1alpha1.LabelRole] == observev1alpha1.RoleLabelLeader || member != "" && p.Labels[observev1alpha1.LabelMember] == member {
			return p.Name, nil
		}
	}
	if member != "" {
		names := make([]string, 0, len(d.Status.Members))
		for _, m := range d.Status.Members {
			names = append(names, m.Name)
		}

		return "", fmt.Errorf("no pod of a member %s runs: choose one of %s", member, strings.Join(names, ", "))
	}
	if d.Spec.Hibernated {
		return "", fmt.Errorf("the Database %s is hibernated: kubectl capstan wake %s", d.Name, d.Name)
	}

	return "", fmt.Errorf("the Database %s has no leader: kubectl capstan status %s shows why; --member opens another member", d.Name, d.Name)
}

// A login is whose rights a client has, and in which database.
type login struct{ role, database string }

// consumerOf a Database: its role and database. Without a name, the first database as superuser.
func consumerOf(d *v1alpha1.Database, name string) (login, error) {
	first := strings.ReplaceAll(d.Name, "-", "_")
	if len(d.Spec.Databases) > 0 {
		first = d.Spec.Databases[0].Name
	}
	if name == "" {
		return login{database: first}, nil
	}
	consumers := d.Spec.Consumers
	if len(consumers) == 0 {
		consumers = []v1alpha1.Consumer{{Name: "app"}}
	}
	names := make([]string, 0, len(consumers))
	for _, c := range consumers {
		if c.Name == name {
			in := c.Database
			if in == "" {
				in = first
			}

			// Sessions of a consumer begin as the owner of its database, so that it owns what they create, or as the reader.
			role := in + accessv1alpha1.SuffixOwner
			if c.Access == v1alpha1.ConsumerReadOnly {
				role = in + accessv1alpha1.SuffixReader
			}

			return login{role: role, database: in}, nil
		}
		names = append(names, c.Name)
	}

	return login{}, fmt.Errorf("the Database %s has no consumer %s: choose one of %s", d.Name, name, strings.Join(names, ", "))
}

// interactive reports whether both sides are a terminal.
func interactive(in io.Reader) bool {
	f, ok := in.(*os.File)

	return ok && term.IsTerminal(int(f.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
}

// inherited are the flags of the connection that were given, for kubectl. The namespace is known.
func inherited(cmd *cobra.Command) []string {
	var flags []string
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "namespace" {
			flags = append(flags, fmt.Sprintf("--%s=%s", f.Name, f.Value))
		}
	})

	return flags
}

// kubectl runs in place of this command: it knows terminals of every system. Its exit code is ours.
func kubectl(cmd *cobra.Command, argv []string) error {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		return fmt.Errorf("cannot find kubectl, which opens the connection: put it into PATH: %w", err)
	}
	// An interrupt is for the client: psql ends its query, and stays.
	child := exec.CommandContext(context.WithoutCancel(cmd.Context()), path, argv...) //nolint:gosec // The user runs it, with own rights.
	child.Stdin, child.Stdout, child.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	err = child.Run()
	if failed := (&exec.ExitError{}); errors.As(err, &failed) {
		return exit{code: failed.ExitCode(), err: fmt.Errorf("the client ended with code %d", failed.ExitCode())}
	}
	if err != nil {
		return fmt.Errorf("cannot run kubectl: %w", err)
	}

	return nil
}
