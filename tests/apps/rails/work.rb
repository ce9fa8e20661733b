# frozen_string_literal: true

# ActiveRecord at work without Rails: work.rb text|prepared. Writes a JSON object of outcomes. The
# clock stands still and is moved by a minute before each step.

require 'active_record'
require 'active_support/testing/time_helpers'
require 'json'
require 'stringio'
include ActiveSupport::Testing::TimeHelpers

$found = {}
$clock = Time.utc(2024, 3, 1, 12)
Time.zone = 'UTC'
ActiveRecord::Base.default_timezone = :utc
ActiveRecord::Base.time_zone_aware_attributes = true
ActiveRecord::Base.logger = nil
ActiveRecord::Migration.verbose = false
SETTINGS = { adapter: 'mysql2', host: '127.0.0.1', port: ENV['DATABASE_PORT'].to_i, username: ENV['DATABASE_USER'], password: ENV['DATABASE_PASSWORD'], database: ENV['DATABASE'],
             encoding: 'utf8mb4', prepared_statements: ARGV[0] == 'prepared', pool: 8 }.freeze
ActiveRecord::Base.establish_connection(SETTINGS)

def step(name)
  $clock += 60
  travel_to $clock
  raise "two steps #{name}" if $found.key?(name)

  $found[name] = plain(yield)
rescue ActiveRecord::ActiveRecordError, ActiveModel::RangeError, ArgumentError, JSON::ParserError => e
  $found[name] = "#{e.class}: #{e.message}".lines.first.strip
end

def plain(value)
  case value
  when Hash then value.to_h { |k, v| [k.to_s, plain(v)] }
  when Array, ActiveRecord::Relation, Set then value.to_a.map { |v| plain(v) }
  when BigDecimal then value.to_s('F')
  when Time, ActiveSupport::TimeWithZone, DateTime then value.utc.iso8601(6)
  when ActiveRecord::Base then value.attributes.to_h { |k, v| [k, plain(v)] }
  when ActiveRecord::Result then value.rows.map { |r| plain(r) }
  when String then value.encoding == Encoding::BINARY ? value.unpack1('H*') : value
  when Float then value.nan? || value.infinite? ? value.to_s : value
  else value
  end
end

def connection = ActiveRecord::Base.connection

def schema
  out = StringIO.new
  ActiveRecord::SchemaDumper.dump(connection, out)
  out.string.lines.reject { |l| l.start_with?('#') }.join.lines.map(&:rstrip)
end

# Migrations.
class Types < ActiveRecord::Migration[6.1]
  def change
    create_table :everythings, comment: 'all types; größe', options: 'ROW_FORMAT=DYNAMIC' do |t|
      t.string :text, limit: 100, null: false, default: "it's", comment: 'größe'
      t.string :exact, collation: 'utf8mb4_bin'
      t.text :long
      t.text :tiny, size: :tiny
      t.text :longest, size: :long
      t.integer :number, default: -5
      t.integer :small, limit: 2
      t.integer :byte, limit: 1
      t.integer :middle, limit: 3, unsigned: true
      t.bigint :big
      t.unsigned_bigint :unsigned
      t.unsigned_integer :positive
      t.float :single
      t.float :twice, limit: 53
      t.decimal :money, precision: 12, scale: 3, default: '1.5'
      t.unsigned_decimal :plus, precision: 5, scale: 1
      t.decimal :whole, precision: 30
      t.boolean :truth, default: true, null: false
      t.date :day
      t.time :clock, precision: 3
      t.datetime :moment, precision: 6
      t.datetime :second
      t.timestamp :stamp, null: true
      t.binary :bytes
      t.binary :fixed, limit: 16
      t.blob :picture, size: :medium
      t.json :document
      t.virtual :shouted, type: :string, as: 'UPPER(`text`)', stored: false
      t.virtual :size, type: :integer, as: 'CHAR_LENGTH(`text`)', stored: true
      t.column :kind, "ENUM('one','zwei','drei''s')"
      t.column :flags, "SET('a','b','c')"
      t.integer :year, limit: 2
      t.timestamps precision: 6
      t.index :exact, unique: true
      t.index %i[text number], order: { number: :desc }, name: 'ix_text_number'
      t.index :long, length: 20
      t.index :longest, type: :fulltext
      t.index :shouted
      t.check_constraint 'number < 1000', name: 'ck_number'
    end
  end
end

class Shop < ActiveRecord::Migration[6.1]
  def change
    create_table(:authors) { |t| t.string :name, null: false, index: { unique: true }; t.integer :books_count, default: 0, null: false; t.integer :lock_version, default: 0; t.integer :status, default: 0; t.json :settings }
    create_table(:books) { |t| t.references :author, foreign_key: { on_delete: :cascade }; t.string :title, null: false; t.decimal :price, precision: 8, scale: 2; t.date :published; t.integer :position; t.timestamps }
    create_table(:reviews) { |t| t.references :book, null: false, foreign_key: true; t.references :reviewable, polymorphic: true; t.integer :stars; t.text :body }
    create_table(:tags) { |t| t.string :name, null: false; t.references :parent, foreign_key: { to_table: :tags, on_delete: :nullify } }
    create_join_table(:books, :tags) { |t| t.index %i[book_id tag_id], unique: true }
    create_table(:codes, id: :string, primary_key: :code, limit: 20) { |t| t.string :name }
    create_table(:pairs, primary_key: %i[one two]) { |t| t.integer :one; t.integer :two; t.string :value }
    create_table(:plain, id: false) { |t| t.integer :a; t.integer :b }
    create_table(:vehicles) { |t| t.string :type; t.string :name; t.integer :wheels }
  end
end

class Changes < ActiveRecord::Migration[6.1]
  def up
    add_column :books, :pages, :integer, after: :title, default: 100, null: false
    add_column :books, :isbn, :string, limit: 13, first: true
    rename_column :books, :price, :cost
    change_column :books, :title, :string, limit: 200, null: false, default: 'untitled'
    change_column_default :books, :cost, from: nil, to: 9.99
    change_column_null :books, :published, false, '2000-01-01'
    change_column_comment :books, :title, from: nil, to: 'der Titel'
    change_table_comment :books, from: nil, to: 'Bücher'
    add_index :books, %i[title isbn], length: { title: 10 }, name: 'ix_title_isbn'
    rename_index :books, 'ix_title_isbn', 'ix_title'
    add_check_constraint :books, 'pages > 0', name: 'ck_pages'
    remove_foreign_key :reviews, :books
    add_foreign_key :reviews, :books, on_delete: :cascade, on_update: :cascade, name: 'fk_reviews_books'
    rename_table :codes, :country_codes
    change_table(:vehicles, bulk: true) { |t| t.string :colour; t.integer :doors, default: 4; t.index :colour; t.remove :wheels; t.rename :name, :label }
    add_reference :vehicles, :author, foreign_key: true
    add_timestamps :vehicles, null: true
  end

  def down
    remove_timestamps :vehicles
    remove_reference :vehicles, :author, foreign_key: true
    change_table(:vehicles, bulk: true) { |t| t.rename :label, :name; t.integer :wheels; t.remove_index :colour; t.remove :colour, :doors }
    rename_table :country_codes, :codes
    remove_foreign_key :reviews, name: 'fk_reviews_books'
    add_foreign_key :reviews, :books
    remove_check_constraint :books, name: 'ck_pages'
    remove_index :books, name: 'ix_title'
    change_table_comment :books, from: 'Bücher', to: nil
    change_column :books, :title, :string, null: false
    change_column_default :books, :cost, from: 9.99, to: nil
    change_column_null :books, :published, true
    rename_column :books, :cost, :price
    remove_column :books, :isbn
    remove_column :books, :pages
  end
end

class Broken < ActiveRecord::Migration[6.1]
  def change
    add_column :tags, :colour, :string
    add_index :tags, :nothing
  end
end

step('types') { Types.migrate(:up); schema }
step('shop') { Shop.migrate(:up); schema }
step('changes') { Changes.migrate(:up); schema }
step('changes back') { Changes.migrate(:down); schema }
step('changes again') { Changes.migrate(:up); connection.columns(:books).map { |c| [c.name, c.sql_type, c.default, c.null, c.comment] } }
step('a broken migration') { Broken.migrate(:up) }
step('half of it') { connection.column_exists?(:tags, :colour) }
step('introspection') do
  connection.tables.sort.to_h do |t|
    [t, [connection.primary_keys(t), connection.indexes(t).map { |i| [i.name, i.columns, i.unique, i.lengths, i.orders, i.type] }, connection.foreign_keys(t).map { |f| [f.from_table, f.to_table, f.options] }, connection.check_constraints(t).map { |c| [c.name, c.expression] },
         connection.table_comment(t)]]
  end
end
step('databases') { [connection.current_database == ENV['DATABASE'], connection.charset, connection.collation, connection.supports_json?, connection.supports_check_constraints?, connection.supports_expression_index?, connection.supports_common_table_expressions?, connection.strict_mode?] }
step('run by the migrator') do
  ActiveRecord::SchemaMigration.create_table
  ActiveRecord::InternalMetadata.create_table
  ActiveRecord::SchemaMigration.create!(version: '20240101000000')
  connection.assume_migrated_upto_version(20240102000000)
  ActiveRecord::SchemaMigration.order(:version).pluck(:version)
end

# Models.
class Everything < ActiveRecord::Base; end

class Author < ActiveRecord::Base
  has_many :books, -> { order(:id) }
  has_many :reviews, through: :books
  enum status: { draft: 0, live: 1, gone: 2 }
  store_accessor :settings, :theme
  validates :name, uniqueness: { case_sensitive: false }, length: { maximum: 255 }
end

class Book < ActiveRecord::Base
  belongs_to :author, counter_cache: true, optional: true
  has_many :reviews
  has_and_belongs_to_many :tags
  scope :long, -> { where('pages > ?', 150) }
end

class Review < ActiveRecord::Base
  belongs_to :book
  belongs_to :reviewable, polymorphic: true, optional: true
end

class Tag < ActiveRecord::Base
  belongs_to :parent, class_name: 'Tag', optional: true
  has_and_belongs_to_many :books
end

class CountryCode < ActiveRecord::Base; self.primary_key = :code; end
class Plain < ActiveRecord::Base; self.table_name = 'plain'; end
class Vehicle < ActiveRecord::Base; end
class Car < Vehicle; end
class Truck < Vehicle; end

step('one of each') do
  Everything.create!(text: "größe 😀 \\ ' \" %", exact: 'Exact', long: 'lang ' * 1000, tiny: 't' * 255, longest: 'the longest text of all', number: 999, small: -32768, byte: -128, middle: 16777215, big: 2**63 - 1, unsigned: 2**64 - 1, positive: 2**32 - 1,
                     single: 1.5e-7, twice: Math::PI, money: BigDecimal('123456789.1239'), plus: '9999.9', whole: BigDecimal('123456789012345678901234567890'), truth: false, day: Date.new(1582, 10, 15), clock: Time.utc(2000, 1, 1, 23, 59, 59.5),
                     moment: Time.utc(2024, 2, 29, 12, 34, 56.123456r), second: Time.utc(2024, 12, 31, 23, 59, 59.6r), stamp: Time.utc(2037, 1, 1), bytes: (0..255).map(&:chr).join.b, fixed: "\x00\xff".b, picture: 'p' * 70_000, document: { a: [1, 2.5, nil, 'ü'], b: { 'c' => true } },
                     kind: "drei's", flags: 'a,c', year: 1999).id
end
step('read it') { Everything.first.attributes.transform_values { |v| v.is_a?(String) && v.length > 600 ? [v.length, v.hash.class.to_s] : v } }
step('defaults') { Everything.create!.reload.attributes }
step('find by each') do
  { text: "größe 😀 \\ ' \" %", exact: 'Exact', number: 999, big: 2**63 - 1, unsigned: 2**64 - 1, money: BigDecimal('123456789.124'), whole: BigDecimal('123456789012345678901234567890'), truth: false, day: Date.new(1582, 10, 15),
    moment: Time.utc(2024, 2, 29, 12, 34, 56.123456r), stamp: Time.utc(2037, 1, 1), fixed: "\x00\xff".b, kind: "drei's", flags: 'a,c', shouted: 'GRÖSSE 😀 \\ \' " %', size: 17, twice: Math::PI, clock: Time.utc(2000, 1, 1, 23, 59, 59.5r) }.to_h { |k, v| [k, Everything.where(k => v).pluck(:id)] }
end
step('find by another case') { [Everything.where(exact: 'exact').count, Everything.where(text: "GRÖSSE 😀 \\ ' \" %").count] }
step('too long') { Everything.create!(text: 'x' * 101) }
step('too big') { Everything.create!(middle: 2**24) }
step('out of range') { Everything.create!(number: 2**31) }
step('null') { Everything.create!(text: nil) }
step('a check') { Everything.create!(number: 1000) }
step('a wrong kind') { Everything.create!(kind: 'vier') }
step('the same') { Everything.create!(exact: 'Exact') }
step('JSON') do
  e = Everything.first
  e.update!(document: e.document.merge('d' => { 'größe' => [1, { 'x' => '😀' }] }))
  [e.reload.document, Everything.where("document->>'$.b.c' = 'true'").pluck(:id), Everything.where("JSON_CONTAINS(document->'$.a', '1')").count, Everything.pluck(Arel.sql("JSON_EXTRACT(document, '$.d')"), Arel.sql('JSON_LENGTH(document)'))]
end
step('changed in place') { e = Everything.first; e.document['a'] << 7; [e.changed, e.save!, e.reload.document['a']] }
step('nothing changed') { e = Everything.first; e.save!; e.saved_changes.keys }
step('a full text') { Everything.where("MATCH (longest) AGAINST ('longest')").pluck(:id) }

# Relations.
step('fill') do
  tags = ['rot', 'grün', '😀', "o'tag"].map { |n| Tag.create!(name: n) }
  tags[1..].each { |t| t.update!(parent: tags[0]) }
  ['Änne', 'Zoë', "O'Hara", 'Иван', '100%', '_x_'].each_with_index do |name, n|
    author = Author.create!(name: name, status: n % 3, settings: { theme: n.even? ? 'dark' : 'größe', list: [n] })
    n.times do |k|
      book = author.books.create!(title: "Buch #{n}-#{k}", pages: 100 + n * 20 + k, cost: n + k / 4.0, published: Date.new(2020 + n, 1 + k, 15), position: k)
      book.tags = tags.values_at(k % 4, (k + 1) % 4)
      (k % 3).times { |r| book.reviews.create!(stars: (n + r) % 5 + 1, body: "text #{r}", reviewable: author) }
    end
  end
  [Author.count, Book.count, Review.count, Author.sum(:books_count)]
end
step('the same author') { Author.create!(name: 'ÄNNE') }
step('past the validation') { Author.new(name: 'anne').save(validate: false) }
step('joins') { Book.joins(:author, :reviews).where(authors: { status: %w[live gone] }).group('books.id', 'authors.name').order(Arel.sql('COUNT(*) DESC'), 'books.id').pluck('authors.name', 'books.title', Arel.sql('COUNT(*)'), Arel.sql('AVG(reviews.stars)')) }
step('left joins') { Author.left_joins(:books).group(:id).order(:id).pluck(:name, Arel.sql('COUNT(books.id)'), Arel.sql('MAX(books.cost)')) }
step('preload') { Author.preload(books: %i[reviews tags]).order(:id).map { |a| [a.name, a.books.map { |b| [b.reviews.size, b.tags.map(&:name).sort] }] } }
step('eager load') { Author.eager_load(books: :tags).where(tags: { name: 'grün' }).order('authors.id', 'books.id').map { |a| [a.name, a.books.map(&:title)] } }
step('eager load a page') { Author.eager_load(:books).order('authors.name').limit(2).offset(1).map { |a| [a.name, a.books.size] } }
step('missing') { [Author.where.missing(:books).pluck(:name), Book.where.not(id: Review.select(:book_id)).count, Author.where(books: Book.long).joins(:books).distinct.pluck(:name).sort] }
step('conditions') do
  [Author.where('name LIKE ?', '%\\%%').pluck(:name), Author.where('name LIKE ?', "%#{ActiveRecord::Base.sanitize_sql_like('_x')}%").pluck(:name), Author.where(name: ["O'Hara", nil]).count, Book.where(published: Date.new(2021, 1, 1)..).count, Book.where(pages: 100...160).count,
   Book.where.not(pages: [120, 140]).or(Book.where(position: 0)).count, Author.live.or(Author.gone).order(:id).pluck(:name), Author.where("settings->>'$.theme' = ?", 'größe').pluck(:id), Book.where(author: Author.first(3)).count, Book.where(id: []).count]
end
step('calculations') { [Book.average(:cost), Book.sum('cost * pages'), Book.minimum(:published), Book.maximum(:title), Book.group(:author_id).sum(:pages), Book.group('YEAR(published)', :position).having('COUNT(*) > 0').count.to_a, Book.distinct.count(:position), Book.group(:author).count.to_a.map { |a, n| [a.name, n] }] }
step('order and page') { [Book.order(cost: :desc, id: :asc).limit(3).offset(2).pluck(:title), Book.order(Arel.sql('FIELD(id, 3, 1, 2) DESC'), :id).limit(3).pluck(:id)] }
step('batches') { [Book.find_each(batch_size: 4).map(&:id), Book.in_batches(of: 6).map { |b| b.pluck(:id) }] }
step('subselects') { [Book.from(Book.select('author_id, COUNT(*) AS n').group(:author_id), :x).order('x.n').pluck('x.author_id', 'x.n'), Author.where(Book.where('books.author_id = authors.id').where('cost > 4').arel.exists).pluck(:name).sort] }
step('unions') { Book.find_by_sql('SELECT id, title FROM books WHERE pages < 125 UNION SELECT id, title FROM books WHERE position = 4 ORDER BY id').map { |b| [b.id, b.title] } }
step('windows') { connection.select_all('SELECT id, ROW_NUMBER() OVER (PARTITION BY author_id ORDER BY cost DESC) AS n, SUM(pages) OVER (ORDER BY id ROWS 2 PRECEDING) AS s FROM books ORDER BY id') }
step('a tree') { connection.select_rows('WITH RECURSIVE t AS (SELECT id, name, 0 AS depth FROM tags WHERE parent_id IS NULL UNION ALL SELECT k.id, k.name, t.depth + 1 FROM tags k JOIN t ON k.parent_id = t.id) SELECT * FROM t ORDER BY depth, id') }
step('explain') { Book.where(id: 1).explain.include?('EXPLAIN for') }
step('subclasses') { Car.create!(label: 'c1', colour: 'rot'); Truck.create!(label: 't1'); Vehicle.create!(label: 'v1'); [Vehicle.order(:id).map { |v| [v.class.name, v.label, v.doors] }, Car.count, Vehicle.where(type: nil).count] }
step('text keys') { CountryCode.create!(code: 'CH', name: 'Schweiz'); CountryCode.create!(code: 'ü', name: 'x'); [CountryCode.find('ch').name, CountryCode.find('ü').name, CountryCode.find_by(code: 'XX')] }
step('a pair of keys') { connection.execute("INSERT INTO pairs VALUES (1, 2, 'a'), (1, 3, 'b')"); connection.execute("INSERT INTO pairs VALUES (1, 2, 'c')") }
step('without a key') { [Plain.create!(a: 1, b: 2).attributes, Plain.where(a: 1).update_all('b = b + 1'), Plain.pluck(:a, :b)] }

# Many rows at once.
step('insert all') { Tag.insert_all([{ id: 50, name: 'bulk 1' }, { id: 51, name: 'bulk 2' }, { id: 1, name: 'again' }]).length; Tag.order(:id).pluck(:id, :name) }
step('insert all that must succeed') { Tag.insert_all!([{ id: 2, name: 'again' }]) }
step('upsert all') { CountryCode.upsert_all([{ code: 'ch', name: 'Suisse' }, { code: 'DE', name: 'Deutschland' }, { code: 'FR', name: 'France' }]); CountryCode.order(:code).pluck(:code, :name) }
step('upsert') { CountryCode.upsert({ code: 'FR', name: 'Frankreich' }); CountryCode.find('FR').name }
step('update all') { [Book.where('pages > 150').update_all(['pages = pages + ?, title = CONCAT(title, ?)', 10, ' +']), Book.where('pages > 150').update_all(['pages = pages + ?', 0]), Book.order(:id).limit(2).update_all(position: 9), Book.joins(:author).where(authors: { name: 'Zoë' }).update_all(cost: 0)] }
step('update counters') { Author.update_counters(2, books_count: 5); Author.reset_counters(2, :books); Author.find(2).books_count }
step('touch all') { Book.where(position: 9).touch_all }
step('delete all') { [Review.where(stars: 1).delete_all, Review.order(:id).limit(1).delete_all, Review.joins(:book).where(books: { position: 2 }).delete_all] }
step('destroy') { Author.find_by(name: '100%').books.first.destroy; [Author.find_by(name: '100%').books_count, Book.count] }
step('a database cascade') { Author.where(name: '_x_').delete_all; [Book.count, Review.count] }
step('a foreign key') { Book.create!(author_id: 999, title: 'x', published: Date.new(2000)) }
step('a parent') { connection.execute('DELETE FROM tags WHERE id = 1'); Tag.where(parent_id: nil).count }
step('find or create') { [Tag.find_or_create_by!(name: 'rot').id, Tag.find_or_create_by!(name: 'neu').name, Tag.create_or_find_by!(name: 'neuer').name, Tag.find_or_initialize_by(name: 'leer').persisted?] }

# Transactions and locks.
step('optimistic') { one, other = Author.find(1), Author.find(1); one.update!(status: :gone); other.update!(status: :live) }
step('rolled back') { Author.transaction { Author.find(1).update!(name: 'lost'); raise ActiveRecord::Rollback }; Author.find(1).name }
step('savepoints') do
  Author.transaction do
    Author.find(1).update_columns(name: 'outer')
    Author.transaction(requires_new: true) { Author.find(1).update_columns(name: 'inner'); raise ActiveRecord::Rollback }
    Author.transaction(requires_new: true) { Author.find(2).update_columns(status: 2) }
  end
  Author.order(:id).limit(2).pluck(:name, :status)
end
step('isolation') { Author.transaction(isolation: :serializable) { Author.count } }
step('with lock') { Author.find(1).with_lock { |_| Author.find(1).update_columns(status: 1) }; Author.find(1).status }
step('no wait') do
  Author.transaction do
    Author.lock.find(1)
    Thread.new do
      ActiveRecord::Base.connection_pool.with_connection { Author.transaction { Author.lock('FOR UPDATE NOWAIT').find(1).id } }
    rescue ActiveRecord::ActiveRecordError => e
      "#{e.class}: #{e.message}"
    end.value
  end
end
step('skip locked') { Author.transaction { Author.lock.find(1); Thread.new { ActiveRecord::Base.connection_pool.with_connection { Author.transaction { Author.lock('FOR UPDATE SKIP LOCKED').order(:id).pluck(:id) } } }.value } }
step('a timeout') do
  Author.transaction do
    Author.lock.find(1)
    Thread.new do
      ActiveRecord::Base.connection_pool.with_connection do |c|
        c.execute('SET SESSION innodb_lock_wait_timeout = 1')
        Author.transaction { Author.lock.find(1) }
      end
    rescue ActiveRecord::ActiveRecordError => e
      "#{e.class}: #{e.message}"
    end.value
  end
end
step('a deadlock') do
  go = Queue.new
  done = [[1, 2], [2, 1]].map do |first, second|
    Thread.new do
      ActiveRecord::Base.connection_pool.with_connection do
        Author.transaction do
          Author.where(id: first).update_all(status: 0)
          go << 1
          sleep 0.01 until go.size == 2
          Author.where(id: second).update_all(status: 0)
        end
      end
      'done'
    rescue ActiveRecord::Deadlocked => e
      "#{e.class}: #{e.message}"
    end
  end
  done.map(&:value).sort
end
step('an advisory lock') { [connection.get_advisory_lock(42), connection.release_advisory_lock(42), connection.release_advisory_lock(42)] }
step('a killed connection') do
  id = connection.select_value('SELECT CONNECTION_ID()')
  Thread.new { ActiveRecord::Base.connection_pool.with_connection { |c| c.execute("KILL #{id}") } }.join
  begin
    connection.select_value('SELECT 1')
  rescue ActiveRecord::ActiveRecordError
    connection.reconnect!
    'again ' + connection.select_value('SELECT 1').to_s
  end
end
step('truncate') { connection.truncate_tables('plain', 'pairs'); [Plain.count, connection.select_value('SELECT COUNT(*) FROM pairs')] }
step('disabled keys') { connection.disable_referential_integrity { connection.execute("INSERT INTO reviews (book_id, stars) VALUES (9999, 1)") }; Review.where(book_id: 9999).delete_all }
step('types at the end') { Types.migrate(:down); connection.table_exists?(:everythings) }
step('the schema at the end') { schema }

puts JSON.generate($found)
