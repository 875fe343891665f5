// Calls every method of @neon/sdk and prints the outcome of each: its status and message, or null.
import { createNeonClient } from "@neon/sdk";

const { NEON_API_KEY: apiKey, NEON_API_HOST: baseUrl, NEON_ORG_ID: orgId } = process.env;
const neon = createNeonClient({ apiKey, baseUrl, wait: { pollIntervalMs: 1 } });
const outcomes = {};

const daysAgo = (days) => {
  const day = new Date(Date.now() - days * 86_400_000);
  return `${day.toISOString().slice(0, 10)}T00:00:00Z`;
};

// Calls a method by its name. A listing is read to its end.
const call = async (name, ...parameters) => {
  const path = name.split(".");
  const method = path.pop();
  const group = path.reduce((object, key) => object[key], neon);
  const started = group[method](...parameters);
  const { data, error } = await (started.all ? started.all() : started);
  outcomes[name] = error ? { status: error.status ?? 0, message: error.message } : null;
  return data;
};

const account = async () => {
  await call("user.me");
  await call("user.organizations");
  await call("regions.list");
  await call("apiKeys.list");
  const { id } = await call("apiKeys.create", { keyName: "sdk" });
  await call("apiKeys.revoke", { keyId: id });
};

const projects = async () => {
  const { id: projectId } = await call("projects.create", { name: "sdk", org_id: orgId });
  await call("projects.createAndConnect", { name: "connected", pooled: true });
  await call("projects.list", { org_id: orgId, search: "sdk" });
  await call("projects.get", { projectId });
  await call("projects.update", { projectId, name: "renamed", settings: { quota: {} } });
  const { id: permissionId } = await call("projects.permissions.grant", {
    projectId,
    email: "friend@example.com",
  });
  await call("projects.permissions.list", { projectId });
  await call("projects.permissions.revoke", { projectId, permissionId });
  const [{ member_id: memberId }] = await call("projects.members.list", { projectId });
  await call("projects.members.setRole", { projectId, memberId, role: "viewer" });
  await call("projects.members.removeRole", { projectId, memberId });
  const period = { from: daysAgo(3), to: daysAgo(1), granularity: "daily", orgId };
  await call("consumption.perProject", period);
  const query = { ...period, metrics: ["compute_unit_seconds", "root_branch_bytes_month"] };
  await call("consumption.perProjectV2", { ...query, project_ids: [projectId] });
  await call("consumption.perBranchV2", { ...query, project_ids: [projectId] });
  return projectId;
};

const transfers = async (projectId) => {
  const { id } = await neon.projects.create({ name: "mine" }, { throwOnError: true });
  const { NEON_OTHER_ORG_ID: toOrgId } = process.env;
  await call("projects.transferFromUser", { toOrgId: orgId, projectIds: [id] });
  await call("projects.transfer", { fromOrgId: orgId, toOrgId, projectIds: [id] });
  await call("projects.delete", { projectId });
  await call("projects.recover", { projectId });
};

const branches = async (projectId) => {
  const { id: branchId } = await call("branches.create", { projectId, name: "sdk" });
  await call("branches.createAndConnect", { projectId, compute: { minCu: 0.25, maxCu: 1 } });
  await call("branches.list", { projectId, limit: 1 });
  await call("branches.get", { projectId, branchId });
  await call("branches.update", { projectId, branchId, protected: false, expires_at: null });
  const main = await call("branches.getDefault", { projectId });
  await call("branches.resetFromParent", { projectId, branchId });
  await call("branches.compareSchema", { projectId, branchId, databaseName: "neondb" });
  await call("branches.setDefault", { projectId, branchId });
  await call("branches.setDefault", { projectId, branchId: main.id });
  const { id } = await neon.branches.create({ projectId }, { throwOnError: true });
  await call("branches.delete", { projectId, branchId: id });
  return { projectId, branchId };
};

const endpoints = async ({ projectId, branchId }) => {
  const spec = { branch_id: branchId, type: "read_only" };
  const { id: endpointId } = await call("postgres.endpoints.create", { projectId, ...spec });
  await call("postgres.endpoints.list", { projectId });
  await call("postgres.endpoints.listByBranch", { projectId, branchId });
  await call("postgres.endpoints.get", { projectId, endpointId });
  await call("postgres.endpoints.update", { projectId, endpointId, suspend_timeout_seconds: 60 });
  await call("postgres.endpoints.suspend", { projectId, endpointId });
  await call("postgres.endpoints.start", { projectId, endpointId });
  await call("postgres.endpoints.restart", { projectId, endpointId });
  await call("postgres.endpoints.delete", { projectId, endpointId });
  await call("postgres.connectionString", { projectId, branchId, pooled: true });
};

const postgres = async (branch) => {
  const roleName = "ada";
  await call("postgres.roles.create", { ...branch, name: roleName });
  await call("postgres.roles.list", branch);
  await call("postgres.roles.get", { ...branch, roleName });
  await call("postgres.roles.password", { ...branch, roleName });
  await call("postgres.roles.resetPassword", { ...branch, roleName });
  const databaseName = "store";
  await call("postgres.databases.create", { ...branch, name: "shop", owner_name: roleName });
  await call("postgres.databases.update", { ...branch, databaseName: "shop", name: databaseName });
  await call("postgres.databases.list", branch);
  await call("postgres.databases.get", { ...branch, databaseName });
  await call("postgres.dataApi.create", { ...branch, databaseName });
  await call("postgres.dataApi.get", { ...branch, databaseName });
  await call("postgres.dataApi.update", { ...branch, databaseName });
  await call("postgres.dataApi.delete", { ...branch, databaseName });
  await call("postgres.databases.delete", { ...branch, databaseName });
  await call("postgres.roles.delete", { ...branch, roleName });
};

const snapshots = async (branch) => {
  const { projectId } = branch;
  const { id: branchId } = await call("branches.getDefault", { projectId });
  const ofMain = { projectId, branchId, name: "friday" };
  const { id: snapshotId } = await call("snapshots.create", ofMain);
  await call("snapshots.list", { projectId });
  await call("snapshots.update", { projectId, snapshotId, expiresAt: "2099-01-01T00:00:00Z" });
  const target = { targetBranchId: branch.branchId, name: "restored" };
  const restored = await call("snapshots.restore", { projectId, snapshotId, ...target });
  await call("branches.finalizeRestore", { projectId, branchId: restored.id });
  await call("snapshots.delete", { projectId, snapshotId });
  const schedule = [{ frequency: "daily", hour: 3, retention_seconds: 604800 }];
  await call("snapshots.setSchedule", { projectId, branchId, schedule });
  await call("snapshots.getSchedule", { projectId, branchId });
};

const operations = async (projectId) => {
  const started = await call("operations.list", { projectId });
  await call("operations.get", { projectId, operationId: started[0].id });
  await call("operations.waitFor", { operations: started.slice(0, 2) });
};

const storage = async (branch) => {
  const bucket = { ...branch, bucketName: "pictures" };
  const object = { ...bucket, objectKey: "cat.png" };
  await call("storage.get", branch);
  await call("storage.buckets.list", branch);
  await call("storage.buckets.create", { ...branch, name: "pictures" });
  await call("storage.buckets.delete", bucket);
  await call("storage.objects.list", bucket);
  await call("storage.objects.get", object);
  await call("storage.objects.delete", object);
  await call("storage.objects.deleteByPrefix", { ...bucket, prefix: "cat" });
  await call("storage.objects.presign", { ...object, operation: "download" });
};

const functions = async (branch) => {
  const one = { ...branch, slug: "hello" };
  await call("functions.list", branch);
  await call("functions.get", one);
  await call("functions.update", { ...one, name: "Hello" });
  await call("functions.deploy", { ...one, zip: new Blob(["zip"]), runtime: "nodejs24" });
  await call("functions.delete", one);
  const domain = "hello.example.com";
  const target = { entity_type: "function", entity_id: "hello" };
  await call("functions.customDomains.register", { ...branch, domain, ...target });
  await call("functions.customDomains.list", branch);
  await call("functions.customDomains.delete", { ...branch, domain });
  const trigger = { ...branch, triggerId: "trigger" };
  const schedule = { type: "schedule", function_slug: "hello", schedule: "0 3 * * *" };
  await call("triggers.list", branch);
  await call("triggers.create", { ...branch, ...schedule });
  await call("triggers.get", trigger);
  await call("triggers.update", { ...trigger, enabled: false });
  await call("triggers.delete", trigger);
};

const credentials = async (branch) => {
  const scopes = ["storage:read"];
  const issued = await call("credentials.create", { ...branch, scopes, principal_type: "user" });
  await call("credentials.list", branch);
  for (const method of ["reveal", "rotate", "revoke"])
    await call(`credentials.${method}`, { ...branch, tokenId: issued.token_id });
  await call("aiGateway.get", branch);
  await call("logs.query", { ...branch, from: "2026-01-01T00:00:00Z" });
  await call("logs.fields", branch);
  await call("logs.fieldValues", { ...branch, fieldName: "severity" });
};

const auth = async (branch) => {
  const provider = { auth_provider: "better_auth" };
  await call("auth.create", { ...branch, ...provider });
  await call("auth.get", branch);
  await call("auth.updateConfig", { ...branch, name: "shop" });
  await call("auth.oauthProviders.list", branch);
  await call("auth.oauthProviders.add", { ...branch, id: "google" });
  await call("auth.oauthProviders.update", { ...branch, providerId: "google", client_id: "id" });
  await call("auth.oauthProviders.delete", { ...branch, providerId: "google" });
  const domain = "https://example.com";
  await call("auth.trustedDomains.list", branch);
  await call("auth.trustedDomains.add", { ...branch, ...provider, domain });
  await call("auth.trustedDomains.delete", { ...branch, ...provider, domains: [{ domain }] });
  const ada = { email: "ada@example.com", name: "Ada" };
  const { id: authUserId } = await call("auth.users.create", { ...branch, ...ada });
  await call("auth.users.updateRole", { ...branch, authUserId, roles: ["admin"] });
  await call("auth.users.delete", { ...branch, authUserId });
  await call("auth.disable", { ...branch, deleteData: true });
};

const projectId = await projects();
const branch = await branches(projectId);
await Promise.all([account(), endpoints(branch), operations(projectId)]);
await Promise.all([postgres(branch), storage(branch), functions(branch)]);
await Promise.all([credentials(branch), auth(branch)]);
await snapshots(branch);
await transfers(projectId);
console.log(JSON.stringify(outcomes));
