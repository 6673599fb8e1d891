// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

// completionTimeout is short, because a person waits at the prompt.
const completionTimeout = 3 * time.Second

// names completes the first argument with the names of objects of these kinds.
func (p *plugin) names(all ...kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := p.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		var found []string
		for _, k := range all {
			switch k {
			case algorithm:
				list, _ := cluster.List[v1alpha1.Algorithm](ctx, c, cluster.Algorithms, "")
				for _, a := range list {
					found = append(found, a.Name)
				}
			case database:
				list, _ := cluster.List[v1alpha1.Database](ctx, c, cluster.Databases, "")
				for _, d := range list {
					found = append(found, d.Name)
				}
			}
		}

		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// members completes a flag with the members of the Database that is named.
func (p *plugin) members(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, err := p.connect()
	if err != nil || len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	d, err := c.Database(ctx, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, m := range d.Status.Members {
		found = append(found, m.Name)
	}

	return found, cobra.ShellCompDirectiveNoFileComp
}
