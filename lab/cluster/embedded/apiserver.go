package embedded

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	serveroptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/client-go/rest"
)

const (
	// shutdownTimeout is how long connections may take to end; they have been cut off already.
	shutdownTimeout = time.Second
	// stopTimeout is how long the API server as a whole may take.
	stopTimeout = 5 * time.Second
	// readyInterval is how often it is asked whether it is ready.
	readyInterval = 3 * time.Millisecond
)

// apiServer is one running API server.
type apiServer struct {
	door  *door
	stop  context.CancelFunc
	done  chan error    // receives one value, when it has ended
	ready chan struct{} // closed when requests of others are let in
}

// apiConfig is what an API server is made of.
type apiConfig struct {
	door        *door
	etcd        string // endpoint
	token       string
	certificate *Certificate
	services    *services
	recorder    *recorder
}

// startAPI starts an API server. Requests of others wait until letIn.
func startAPI(ctx context.Context, c apiConfig) (*apiServer, *rest.Config, error) {
	a := &apiServer{door: c.door, done: make(chan error, 1), ready: make(chan struct{})}
	loopback := &rest.Config{
		Host:            "https://" + c.door.Addr().String(),
		BearerToken:     newToken(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.certificate.CertPEM},
		QPS:             -1,
	}
	generic, err := genericConfig(c, loopback)
	if err != nil {
		return nil, nil, err
	}
	generic.BuildHandlerChainFunc = func(h http.Handler, config *genericapiserver.Config) http.Handler {
		h = genericapiserver.DefaultBuildHandlerChain(h, config)
		return a.hold(c.recorder.wrap(h), h, loopback.BearerToken)
	}
	etcd := etcdOptions(c.etcd)
	generic.RESTOptionsGetter = etcd.CreateRESTOptionsGetter(
		&genericoptions.SimpleStorageFactory{StorageConfig: withTracker(etcd, generic)}, nil)

	config := &apiserver.Config{
		GenericConfig: generic,
		ExtraConfig: apiserver.ExtraConfig{
			CRDRESTOptionsGetter: serveroptions.NewCRDRESTOptionsGetter(*etcd, nil, generic.StorageObjectCountTracker),
			ServiceResolver:      c.services,
			MasterCount:          1,
		},
	}
	api, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, nil, fmt.Errorf("make the API server: %w", err)
	}
	server := api.GenericAPIServer
	installGroups(api)
	if err := installNamespaces(ctx, server, *etcd); err != nil {
		server.Destroy()
		return nil, nil, err
	}
	server.Handler.NonGoRestfulMux.Handle(servicesPath, c.services)
	server.Handler.NonGoRestfulMux.Handle(requestsPath, c.recorder)
	server.ShutdownTimeout = shutdownTimeout

	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	a.stop = stop
	prepared := server.PrepareRun()
	go func() { a.done <- prepared.RunWithContext(run) }()
	return a, loopback, nil
}

// genericConfig is what every Kubernetes API server needs to know.
func genericConfig(c apiConfig, loopback *rest.Config) (*genericapiserver.RecommendedConfig, error) {
	cert, err := dynamiccertificates.NewStaticCertKeyContent("crdlab", c.certificate.CertPEM, c.certificate.KeyPEM)
	if err != nil {
		return nil, fmt.Errorf("read the API server's certificate: %w", err)
	}
	g := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	g.SecureServing = &genericapiserver.SecureServingInfo{
		Listener: c.door, Cert: cert, HTTP2MaxStreamsPerConnection: 1000,
	}
	g.LoopbackClientConfig = loopback
	g.ExternalAddress = c.door.Addr().String()
	g.Authentication.Authenticator = bearertoken.New(onlyToken(c.token))
	g.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	g.AdmissionControl = establishedBefore{}
	g.EffectiveVersion = ownVersion{compatibility.DefaultBuildEffectiveVersion()}
	g.FeatureGate = utilfeature.DefaultFeatureGate
	g.MergedResourceConfig = apiserver.DefaultAPIResourceConfigSource()
	g.EnableProfiling = false

	long := g.LongRunningFunc
	g.LongRunningFunc = func(r *http.Request, info *apirequest.RequestInfo) bool {
		return r.URL.Path == requestsPath || long(r, info)
	}
	defs := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(definitions)
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme, coreScheme)
	g.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(defs, namer)
	g.OpenAPIConfig.Info.Title, g.OpenAPIConfig.Info.Version = "crdlab", "v1"
	g.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(defs, namer)
	return g, nil
}

// etcdOptions say how the API server keeps its data: under the keys that a full one uses, with the watch cache.
func etcdOptions(endpoint string) *genericoptions.EtcdOptions {
	o := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry",
		apiserver.Codecs.LegacyCodec(apiextensionsv1.SchemeGroupVersion)))
	o.StorageConfig.Transport.ServerList = []string{endpoint}
	// A lab does not live long enough for these, and each has its own goroutines and requests.
	o.StorageConfig.CompactionInterval = 0
	o.StorageConfig.DBMetricPollInterval = 0
	o.StorageConfig.CountMetricPollPeriod = 0
	o.EnableWatchCache = true
	return o
}

func withTracker(o *genericoptions.EtcdOptions, g *genericapiserver.RecommendedConfig) storagebackend.Config {
	config := o.StorageConfig
	config.StorageObjectCountTracker = g.StorageObjectCountTracker
	return config
}

// onlyToken knows one user: whoever has the token may do everything.
func onlyToken(token string) authenticator.TokenFunc {
	who := &user.DefaultInfo{Name: "crdlab", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	return func(_ context.Context, got string) (*authenticator.Response, bool, error) {
		if subtle.ConstantTimeCompare([]byte(got), []byte(token)) != 1 {
			return nil, false, nil
		}
		return &authenticator.Response{User: who}, true, nil
	}
}

// hold lets the server's own requests through at once, and those of others when it is ready: who connected while a fresh
// server took the place of another must not see it half made.
func (a *apiServer) hold(others, own http.Handler, loopbackToken string) http.Handler {
	loopback := []byte("Bearer " + loopbackToken)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), loopback) == 1 {
			own.ServeHTTP(w, r)
			return
		}
		select {
		case <-a.ready:
			others.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}

// awaitListening waits until the server answers at all, awaitReady until it accepts CRDs.
func (a *apiServer) awaitListening(ctx context.Context, loopback *rest.Config) error {
	return a.await(ctx, loopback, func(int) bool { return true })
}

func (a *apiServer) awaitReady(ctx context.Context, loopback *rest.Config) error {
	return a.await(ctx, loopback, func(status int) bool { return status == http.StatusOK })
}

func (a *apiServer) await(ctx context.Context, loopback *rest.Config, enough func(status int) bool) error {
	client, err := rest.HTTPClientFor(loopback)
	if err != nil {
		return fmt.Errorf("make a client for the API server: %w", err)
	}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, loopback.Host+"/readyz", nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
			if enough(response.StatusCode) {
				return nil
			}
		}
		select {
		case <-tick.C:
		case err := <-a.done:
			a.done <- err
			return fmt.Errorf("the API server ended while it started: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("wait for the API server to be ready: %w", context.Cause(ctx))
		}
	}
}

// letIn lets the requests of others in.
func (a *apiServer) letIn() { close(a.ready) }

// end ends the server and every connection to it at once. Its data is worth nothing afterwards, so nobody is waited for.
func (a *apiServer) end() error {
	a.door.endAll() // first: a server that was told to stop answers 503 to whoever is still connected
	a.stop()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case err := <-a.done:
		return err
	case <-timer.C:
		return errors.New("the API server did not end in " + stopTimeout.String())
	}
}
