// Sequelize: synchronised models, relations with foreign keys, queries, JSON, transactions, a change of the schema.
const { Sequelize, DataTypes, Op, fn, col, literal, QueryTypes } = require('sequelize');

const env = process.env;
const db = new Sequelize(env.DATABASE, env.DATABASE_USER, env.DATABASE_PASSWORD, {
  host: '127.0.0.1', port: +env.DATABASE_PORT, dialect: 'mysql', logging: false, pool: { max: 4 }, define: { charset: 'utf8mb4' },
});
const found = {};
const plain = (rows) => JSON.parse(JSON.stringify(rows));
const names = (rows) => rows.map((r) => r.name);
const refused = async (work) => {
  try { await work(); return null; } catch (e) { return [e.name, (e.parent || e).errno || null, (e.parent || e).sqlMessage || e.message]; }
};

const Team = db.define('team', {
  name: { type: DataTypes.STRING(60), allowNull: false, unique: true },
  kind: { type: DataTypes.ENUM('a', 'b', 'größe'), defaultValue: 'a' },
  settings: { type: DataTypes.JSON },
}, { timestamps: false });
const Person = db.define('person', {
  id: { type: DataTypes.UUID, primaryKey: true },
  name: { type: DataTypes.STRING, allowNull: false },
  age: { type: DataTypes.INTEGER.UNSIGNED, validate: { min: 0 } },
  pay: { type: DataTypes.DECIMAL(10, 2) },
  born: { type: DataTypes.DATEONLY },
  seen: { type: DataTypes.DATE(6) },
  active: { type: DataTypes.BOOLEAN, defaultValue: true },
  note: { type: DataTypes.TEXT('medium') },
  photo: { type: DataTypes.BLOB },
  ratio: { type: DataTypes.DOUBLE },
  version: { type: DataTypes.BIGINT },
}, { paranoid: true, indexes: [{ fields: ['age', { name: 'name', length: 20, order: 'DESC' }] }, { fields: ['born'] }] });
const Project = db.define('project', { name: DataTypes.STRING, budget: DataTypes.FLOAT }, { timestamps: false });
const Membership = db.define('membership', { role: DataTypes.STRING(20), since: DataTypes.DATEONLY }, { timestamps: false });
Team.hasMany(Person, { onDelete: 'SET NULL' });
Person.belongsTo(Team);
Person.belongsTo(Person, { as: 'boss', onDelete: 'RESTRICT', constraints: true });
Person.belongsToMany(Project, { through: Membership });
Project.belongsToMany(Person, { through: Membership });

const uuid = (n) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

async function main() {
  await db.authenticate();
  await db.sync({ force: true });
  await db.sync({ alter: true });
  found['tables'] = (await db.getQueryInterface().showAllTables()).map((t) => t.tableName || t).sort();
  found['description'] = await db.getQueryInterface().describeTable('people');
  found['foreign keys'] = plain(await db.getQueryInterface().getForeignKeyReferencesForTable('people')).map((k) => [k.columnName, k.referencedTableName, k.referencedColumnName]).sort();
  found['indexes'] = plain(await db.getQueryInterface().showIndex('people')).map((i) => [i.name, i.unique, i.fields.map((f) => [f.attribute, f.length || null, f.order])]).sort();

  const teams = await Team.bulkCreate(['red', 'grün', 'blue'].map((name, n) => ({ name, kind: ['a', 'b', 'größe'][n], settings: { level: n, tags: ['x', `t${n}`], deep: { on: n > 0 } } })));
  await Person.bulkCreate([...Array(30).keys()].map((n) => ({
    id: uuid(n), name: `${n % 2 ? 'Zoë' : 'ann'} ${n % 7}`, age: 20 + n, pay: (1000.25 * n).toFixed(2), born: `19${60 + n}-0${1 + n % 9}-1${n % 10}`,
    seen: new Date(Date.UTC(2024, n % 12, 1 + n, 3, 4, 5, 678)), active: n % 3 > 0, note: n % 4 ? null : 'note '.repeat(n), photo: Buffer.from([n, 255, 0]),
    ratio: n / 7, version: `${9007199254740993n + BigInt(n)}`, teamId: n % 4 === 3 ? null : teams[n % 4].id, bossId: n ? uuid(n >> 1) : null,
  })));
  const projects = await Project.bulkCreate([{ name: 'alpha', budget: 1.5 }, { name: 'beta', budget: null }, { name: 'gamma', budget: 99.25 }]);
  for (const person of await Person.findAll({ where: { age: { [Op.lt]: 30 } }, order: ['id'] })) {
    await person.addProjects(projects.slice(0, 1 + person.age % 3), { through: { role: `r${person.age % 2}`, since: '2024-02-29' } });
  }

  found['find by key'] = plain(await Person.findByPk(uuid(4), { attributes: { exclude: ['createdAt', 'updatedAt'] } }));
  found['where'] = names(await Person.findAll({ where: { [Op.or]: [{ name: { [Op.like]: 'ZOË%' } }, { age: { [Op.between]: [40, 44] } }], active: true, teamId: { [Op.not]: null } }, order: [['age', 'DESC']] }));
  found['in and not in'] = names(await Person.findAll({ where: { age: { [Op.in]: [21, 22, 35, 99] }, name: { [Op.notIn]: ['ann 1'] } }, order: ['age'] }));
  found['regexp'] = names(await Person.findAll({ where: { name: { [Op.regexp]: '^(ann|zoë) [0-2]$' } }, order: ['age'], limit: 5, offset: 2 }));
  found['include'] = plain(await Team.findAll({ include: [{ model: Person, attributes: ['name', 'age'], where: { age: { [Op.gt]: 40 } }, required: false }], order: ['id', [Person, 'age', 'ASC']] }));
  found['include of several levels'] = plain(await Person.findAll({
    attributes: ['name', 'age'], where: { age: { [Op.lt]: 26 } }, order: ['age', [Project, 'name', 'DESC']],
    include: [{ model: Person, as: 'boss', attributes: ['name'], include: [{ model: Team, attributes: ['name'] }] }, { model: Project, attributes: ['name'], through: { attributes: ['role', 'since'] } }],
  }));
  found['limit with include'] = plain(await Person.findAndCountAll({ attributes: ['name', 'age'], include: [{ model: Project, attributes: ['name'] }], distinct: true, order: ['age', [Project, 'id', 'ASC']], limit: 3, offset: 1 }));
  found['group'] = plain(await Person.findAll({ attributes: ['teamId', [fn('COUNT', col('id')), 'n'], [fn('SUM', col('pay')), 'pay'], [fn('MAX', col('seen')), 'seen']], group: ['teamId'], having: literal('n > 2'), order: ['teamId'], raw: true }));
  found['aggregates'] = [await Person.count(), await Person.max('age'), await Person.sum('pay'), await Person.count({ where: { active: false } })];
  found['JSON'] = [names(await Team.findAll({ where: { 'settings.level': 2 } })), names(await Team.findAll({ where: { settings: { deep: { on: true } } }, order: ['id'] })),
    plain(await Team.findAll({ attributes: ['name', [db.json('settings.tags[1]'), 'tag']], order: [['id', 'DESC']] }))];
  found['raw'] = await db.query('SELECT t.name, COUNT(p.id) n FROM teams t LEFT JOIN people p ON p.teamId = t.id AND p.age > :age GROUP BY t.id ORDER BY t.id', { replacements: { age: 35 }, type: QueryTypes.SELECT });

  const person = await Person.findByPk(uuid(5));
  person.name = 'changed 😀';
  await person.save();
  await person.increment('age', { by: 3 });
  found['updated'] = [(await person.reload()).name, person.age, await Person.update({ pay: literal('pay * 2') }, { where: { teamId: teams[1].id } })];
  found['upsert'] = [(await Team.upsert({ id: teams[0].id, name: 'red', kind: 'b', settings: null }))[1], (await Team.findByPk(teams[0].id)).kind];
  found['find or create'] = (await Team.findOrCreate({ where: { name: 'new' }, defaults: { kind: 'größe' } }))[1];
  await Team.bulkCreate([{ name: 'red', kind: 'a' }, { name: 'other', kind: 'a' }], { updateOnDuplicate: ['kind'] });
  found['bulk upsert'] = plain(await Team.findAll({ attributes: ['name', 'kind'], order: ['name'] }));

  found['refused'] = [await refused(() => Team.create({ name: 'red' })), await refused(() => Person.update({ teamId: 4711 }, { where: { id: uuid(1) } })),
    await refused(() => Person.destroy({ where: { id: uuid(1) }, force: true })), await refused(() => Person.create({ id: uuid(99), name: null })),
    await refused(() => db.query("INSERT INTO teams (name, kind) VALUES ('x', 'none')"))];
  found['rolled back'] = await refused(() => db.transaction(async (t) => { await Team.create({ name: 'gone' }, { transaction: t }); throw new Error('no'); }));
  await db.transaction({ isolationLevel: Sequelize.Transaction.ISOLATION_LEVELS.SERIALIZABLE }, async (t) => {
    const locked = await Person.findOne({ where: { age: 30 }, lock: t.LOCK.UPDATE, transaction: t });
    await locked.update({ note: 'locked' }, { transaction: t });
    await db.transaction({ transaction: t }, (inner) => Team.create({ name: 'inner' }, { transaction: inner }));
  });
  found['committed'] = [await Team.count(), await Person.count({ where: { note: 'locked' } })];
  await Person.destroy({ where: { age: { [Op.gte]: 48 } } });
  found['soft delete'] = [await Person.count(), await Person.count({ paranoid: false })];
  await Team.destroy({ where: { name: 'blue' } });
  found['set null'] = await Person.count({ where: { teamId: null } });

  const change = db.getQueryInterface();
  await change.addColumn('projects', 'ownerId', { type: DataTypes.UUID, references: { model: 'people', key: 'id' }, onDelete: 'CASCADE', after: 'name' });
  await change.changeColumn('projects', 'budget', { type: DataTypes.DECIMAL(12, 3), allowNull: false, defaultValue: 1 }).catch((e) => { found['change to NOT NULL'] = e.parent.errno; });
  await change.renameColumn('projects', 'name', 'title');
  await change.addIndex('projects', ['title'], { unique: true, name: 'one_title' });
  await change.addConstraint('projects', { type: 'check', fields: ['budget'], name: 'positive', where: { budget: { [Op.gt]: 0 } } });
  found['refused by CHECK'] = await refused(() => db.query("INSERT INTO projects (title, budget) VALUES ('minus', -1)"));
  await db.query('ALTER TABLE projects DROP CHECK positive');
  await change.removeColumn('projects', 'ownerId');
  await change.renameTable('projects', 'plans');
  found['constraints'] = plain(await change.showConstraint('memberships')).map((c) => [c.constraintName, c.constraintType]).sort();
  await db.close();
  console.log(JSON.stringify(found));
}

main().catch((e) => { console.error(e); process.exit(1); });
