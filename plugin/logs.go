// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/capstan-dev/capstan/plugin/internal/cluster"
	"github.com/capstan-dev/capstan/plugin/internal/logs"
)

// A reading is which part of the logs to print.
type reading struct {
	follow, all bool
	tail        int64
	since       time.Duration
	only        string
}

func (p *plugin) logs() *cobra.Command {
	var r reading
	cmd := &cobra.Command{
		Use: "logs [algorithm|database] NAME", Short: "Print the logs of all members or replicas, merged by time",
		Example: "  kubectl capstan logs orders-db --since 1h\n  kubectl capstan logs algorithm/reco --follow",
		GroupID: groupSee, Args: cobra.RangeArgs(1, 2), ValidArgsFunction: p.names(algorithm, database),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.connect()
			if err != nil {
				return err
			}
			k, name, err := find(cmd, c, args)
			if err != nil {
				return err
			}
			failed := func(err error) { cmd.PrintErrln("kubectl capstan:", err) }
			list := func(ctx context.Context) ([]logs.Source, error) { return r.sources(ctx, c, k, name) }
			if r.follow {
				return logs.Follow(cmd.Context(), cmd.OutOrStdout(), list, failed)
			}
			sources, err := list(cmd.Context())
			if err != nil {
				return err
			}
			if len(sources) == 0 {
				return fmt.Errorf("no pod of %s %s runs: kubectl capstan status %s shows why", k, name, name)
			}

			return logs.Print(cmd.Context(), cmd.OutOrStdout(), sources, failed)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&r.follow, "follow", "f", false, "Follow the logs, also of pods that are created later")
	flags.Int64Var(&r.tail, "tail", 100, "Lines of each container from before; -1 for all")
	flags.DurationVar(&r.since, "since", 0, "Only lines that are not older")
	flags.StringVarP(&r.only, "container", "c", "", "Only the containers of this name. Default: the server's")
	flags.BoolVar(&r.all, "all-containers", false, "Also of containers beside the server")

	return cmd
}

// pods of an Algorithm or a Database.
func pods(ctx context.Context, c *cluster.Cluster, k kind, name string) ([]corev1.Pod, error) {
	if k == database {
		return c.Members(ctx, name)
	}

	return c.Replicas(ctx, name)
}

// servers are the containers that are the point of their pods.
var servers = []string{"algorithm", "postgres", "mysql"}

// sources of logs: a container each that has begun.
func (r reading) sources(ctx context.Context, c *cluster.Cluster, k kind, name string) ([]logs.Source, error) {
	all, err := pods(ctx, c, k, name)
	if err != nil {
		return nil, err
	}
	var found []logs.Source
	known := map[string]bool{}
	for _, p := range all {
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			known[s.Name] = true
			wanted := r.all || s.Name == r.only || r.only == "" && slices.Contains(servers, s.Name)
			if !wanted || s.State.Running == nil && s.State.Terminated == nil {
				continue
			}
			label := p.Name
			if r.all {
				label += "/" + s.Name
			}
			found = append(found, r.source(c, p.Name, s.Name, label))
		}
	}
	if len(found) == 0 && r.only != "" && !known[r.only] && len(all) > 0 {
		return nil, fmt.Errorf("no pod has a container %s", r.only)
	}

	return found, nil
}

func (r reading) source(c *cluster.Cluster, pod, container, label string) logs.Source {
	return logs.Source{Name: label, Open: func(ctx context.Context, since time.Time, follow bool) (io.ReadCloser, error) {
		query := url.Values{}
		if follow {
			query.Set("follow", "true")
		}
		switch {
		case !since.IsZero():
			query.Set("sinceTime", since.UTC().Format(time.RFC3339))
		default:
			if r.since > 0 {
				query.Set("sinceSeconds", strconv.Itoa(max(int(r.since.Seconds()), 1)))
			}
			if r.tail >= 0 {
				query.Set("tailLines", strconv.FormatInt(r.tail, 10))
			}
		}
		body, err := c.Logs(ctx, pod, container, query)
		if err != nil && errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}

		return body, err
	}}
}
