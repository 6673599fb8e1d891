// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/capstan-dev/capstan/plugin/internal/cluster"
)

// A plugin is what all commands share.
type plugin struct {
	// connect to the cluster and namespace of the flags and of KUBECONFIG.
	connect func() (*cluster.Cluster, error)
	now     func() time.Time
}

// connect to what a configuration names.
func connect(from clientcmd.ClientConfig) (*cluster.Cluster, error) {
	config, err := from.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	config.UserAgent = "kubectl-capstan/" + version
	// One person at a terminal: the client's own limits only slow it down.
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{Deduplicate: true})
	namespace, _, err := from.Namespace()
	if err != nil {
		return nil, fmt.Errorf("cannot read the namespace of the kubeconfig: %w", err)
	}

	return cluster.New(config, namespace)
}

// shown are the flags of the connection that help lists. The others work, too.
var shown = []string{"context", "kubeconfig", "namespace"}

func newRoot() *cobra.Command {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	overrides := &clientcmd.ConfigOverrides{}
	from := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	p := &plugin{connect: func() (*cluster.Cluster, error) { return connect(from) }, now: time.Now}
	root := p.root()
	flags := root.PersistentFlags()
	flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "Path of the kubeconfig")
	clientcmd.BindOverrideFlags(overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	hide(flags)

	return root
}

// root is the command that all others are below.
func (p *plugin) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-capstan",
		Short:         "See and operate Algorithms and Databases of Capstan",
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl capstan"},
	}
	root.AddGroup(
		&cobra.Group{ID: groupSee, Title: "See:"},
		&cobra.Group{ID: groupAlgorithm, Title: "Rollout of an Algorithm:"},
		&cobra.Group{ID: groupDatabase, Title: "Operate a Database:"},
		&cobra.Group{ID: groupPreview, Title: "Previews:"},
	)
	root.AddCommand(p.status(), p.plan(), p.logs(), p.doctor(), p.supportBundle(), versionCommand())
	root.AddCommand(p.algorithmActs()...)
	root.AddCommand(p.databaseActs()...)
	root.AddCommand(p.shells()...)
	root.AddCommand(p.preview())

	return root
}

// Groups of commands in the help.
const (
	groupSee       = "see"
	groupAlgorithm = "algorithm"
	groupDatabase  = "database"
	groupPreview   = "preview"
)

// hide flags that few need.
func hide(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		f.Hidden = true
		for _, name := range shown {
			if f.Name == name {
				f.Hidden = false
			}
		}
	})
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of the plugin", GroupID: groupSee, Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			cmd.Printf("kubectl-capstan %s %s/%s %s\n", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
		},
	}
}

// A kind that people name on the command line.
type kind string

const (
	algorithm kind = "algorithm"
	database  kind = "database"
)

// kinds by all words for them.
var kinds = map[string]kind{
	"algorithm": algorithm, "algorithms": algorithm, "algo": algorithm, "algorithms.capstan.dev": algorithm,
	"database": database, "databases": database, "db": database, "databases.capstan.dev": database,
}

// named splits "database orders-db" and "database/orders-db"; of a name alone the kind is not known.
func named(args []string) (k kind, name string, err error) {
	words := strings.SplitN(strings.Join(args, "/"), "/", 2)
	if len(words) == 1 {
		return "", words[0], nil
	}
	k, ok := kinds[strings.ToLower(words[0])]
	if !ok || words[1] == "" || strings.Contains(words[1], "/") {
		return "", "", fmt.Errorf("cannot understand %q: write algorithm NAME, database NAME or NAME", strings.Join(args, " "))
	}

	return k, words[1], nil
}

// find the kind of a name.
func find(cmd *cobra.Command, c *cluster.Cluster, args []string) (kind, string, error) {
	k, name, err := named(args)
	if err != nil || k != "" {
		return k, name, err
	}
	_, notAlgorithm := c.Algorithm(cmd.Context(), name)
	_, notDatabase := c.Database(cmd.Context(), name)
	switch {
	case notAlgorithm == nil && notDatabase == nil:
		return "", "", fmt.Errorf("there are an Algorithm and a Database %s: write algorithm/%s or database/%s", name, name, name)
	case notAlgorithm == nil:
		return algorithm, name, nil
	case notDatabase == nil:
		return database, name, nil
	default:
		return "", "", fmt.Errorf("%w; %w", notAlgorithm, notDatabase)
	}
}

// one name of a kind.
func one(args []string, want kind) (string, error) {
	k, name, err := named(args)
	if err == nil && k != "" && k != want {
		err = fmt.Errorf("%s is not the kind of this command: it is for a %s", k, want)
	}

	return name, err
}
